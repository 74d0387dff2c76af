// Datasets that are read in chunks, samplers for several processes, and values of no fixed type in
// files.
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "check.h"

namespace data = torch::data;

namespace {

// Chunk number i holds i + 1 numbers, all below 100 * i + 100.
struct Numbers : data::datasets::ChunkDataReader<int> {
  explicit Numbers(size_t chunks, bool broken = false) : chunks(chunks), broken(broken) {}
  std::vector<int> read_chunk(size_t i) override {
    TORCH_CHECK(!broken || i != 1, "chunk ", i, " is broken");
    std::vector<int> out(i + 1);
    std::iota(out.begin(), out.end(), static_cast<int>(100 * i));
    return out;
  }
  size_t chunk_count() override { return chunks; }
  void reset() override {}
  size_t chunks;
  bool broken;
};
using Sequential = data::samplers::SequentialSampler;
using InOrder = data::datasets::ChunkDataset<Numbers, Sequential, Sequential>;

std::vector<int> flat(const std::vector<std::vector<int>>& batches) {
  std::vector<int> out;
  for (const auto& batch : batches) {
    out.insert(out.end(), batch.begin(), batch.end());
  }
  return out;
}
template <class Loader>
std::vector<std::vector<int>> all_of(Loader& loader) {
  std::vector<std::vector<int>> out;
  for (auto& batch : *loader) {
    out.push_back(batch);
  }
  return out;
}

RL_TEST(chunks_come_in_batches_across_their_borders) {
  auto dataset = data::datasets::make_shared_dataset<InOrder>(
      Numbers(4), Sequential(0), Sequential(0), data::datasets::ChunkDatasetOptions(1, 3));
  auto loader = data::make_data_loader(dataset, data::DataLoaderOptions(3));
  for (int epoch = 0; epoch < 2; epoch++) {
    const auto batches = all_of(loader);
    CHECK(batches.size() == 4 && batches[0] == (std::vector<int>{0, 100, 101}));
    CHECK(flat(batches) == (std::vector<int>{0, 100, 101, 200, 201, 202, 300, 301, 302, 303}));
  }
  CHECK(!dataset.size().has_value());
}

RL_TEST(every_sample_comes_once_from_several_threads) {
  using Shuffled = data::datasets::ChunkDataset<Numbers>;
  for (const size_t workers : {0, 2}) {
    for (const size_t cross : {1, 3}) {
      auto dataset = data::datasets::make_shared_dataset<Shuffled>(
          Numbers(7), data::samplers::RandomSampler(0), data::samplers::RandomSampler(0),
          data::datasets::ChunkDatasetOptions(3, 4, 8, cross));
      auto sums = std::move(dataset).map(data::transforms::BatchLambda<std::vector<int>, int>(
          [](std::vector<int> batch) { return static_cast<int>(batch.size()); }));
      auto loader = data::make_data_loader(sums, data::DataLoaderOptions(4).workers(workers));
      int total = 0;
      for (const int n : *loader) {
        total += n;
      }
      CHECK(total == 28);
    }
  }
}

RL_TEST(errors_and_preprocessing_of_chunks) {
  auto dataset = data::datasets::make_shared_dataset<InOrder>(
      Numbers(3, true), Sequential(0), Sequential(0), data::datasets::ChunkDatasetOptions(1, 1),
      [](std::vector<int>& chunk) { std::reverse(chunk.begin(), chunk.end()); });
  dataset->reset();
  CHECK(dataset->get_batch(1)->at(0) == 0);
  CHECK_THROWS(data::WorkerException, "chunk 1 is broken", dataset->get_batch(1));
  CHECK(dataset->get_batch(1)->at(0) == 202);  // the last of its chunk
  CHECK_THROWS(c10::Error, "does not match", dataset->get_batch(2));
  CHECK_THROWS(c10::Error, "Preloader count is 0", data::datasets::ChunkDatasetOptions(0, 1));
  CHECK_THROWS(c10::Error, "Cache size", data::datasets::ChunkDatasetOptions(1, 3, 2));
  InOrder fresh(Numbers(2), Sequential(0), Sequential(0),
                data::datasets::ChunkDatasetOptions(1, 1));
  CHECK_THROWS(c10::Error, "reset()", fresh.get_batch());
}

RL_TEST(processes_share_out_what_there_is) {
  for (const bool duplicates : {true, false}) {
    std::multiset<size_t> seen;
    for (const size_t rank : {0, 1, 2}) {
      data::samplers::DistributedRandomSampler sampler(10, 3, rank, duplicates);
      sampler.set_epoch(5);
      sampler.reset();
      size_t own = 0;
      while (const auto batch = sampler.next(3)) {
        own += batch->size();
        seen.insert(batch->begin(), batch->end());
      }
      CHECK(own == (duplicates ? 4 : 3));
    }
    CHECK(std::set<size_t>(seen.begin(), seen.end()).size() == (duplicates ? 10 : 9));
  }
  data::samplers::DistributedSequentialSampler sampler(7, 2, 1);
  CHECK(*sampler.next(9) == (std::vector<size_t>{4, 5, 6, 0}));
  CHECK(!sampler.next(1));
}

RL_TEST(values_are_pickled) {
  c10::Dict<std::string, at::IValue> dict;
  dict.insert("tensor", at::arange(3));
  dict.insert("tuple", std::make_tuple(std::string("a"), true, 2.5));
  dict.insert("list", std::vector<int64_t>{1, 2});
  dict.insert("none", at::IValue());
  const std::vector<char> bytes = torch::pickle_save(dict);
  const at::IValue back = torch::pickle_load(bytes);
  CHECK(back.isGenericDict());
  const auto read = back.to<c10::Dict<std::string, at::IValue>>();
  CHECK(read.size() == 4 && torch::equal(read.at("tensor").toTensor(), at::arange(3)));
  const auto parts = read.at("tuple").to<std::tuple<std::string, bool, double>>();
  CHECK(parts == std::make_tuple(std::string("a"), true, 2.5));
  CHECK(read.at("list").toIntVector() == (std::vector<int64_t>{1, 2}));
  CHECK(read.at("none").isNone() && !read.contains("absent"));
  CHECK(read.at("tuple").toTuple()->elements()[1].toBool());
  CHECK_THROWS(c10::Error, "", read.at("none").toTuple());
  CHECK_THROWS(c10::Error, "", torch::pickle_load({'n', 'o'}));
  c10::List<at::IValue> endless;
  endless.push_back(endless);
  CHECK_THROWS(c10::Error, "nested too deep", torch::pickle_save(endless));
  endless.clear();
}

RL_TEST(groups_take_what_they_do_not_say_from_the_optimiser) {
  namespace optim = torch::optim;
  const auto x = torch::zeros(1, torch::requires_grad());
  const auto y = torch::zeros(1, torch::requires_grad());
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{x},
                      std::make_unique<optim::AdamOptions>(optim::AdamOptions().weight_decay(0.1)));
  groups.emplace_back(std::vector<at::Tensor>{y});
  optim::Adam optimizer(groups, optim::AdamOptions(0.01).weight_decay(0.05).betas({0.8, 0.9}));
  const auto& own = static_cast<optim::AdamOptions&>(optimizer.param_groups()[0].options());
  CHECK(own.lr() == 0.01 && own.weight_decay() == 0.1 && std::get<0>(own.betas()) == 0.8);
  const auto& usual = static_cast<optim::AdamOptions&>(optimizer.param_groups()[1].options());
  CHECK(usual.weight_decay() == 0.05);
  groups[0].set_options(std::make_unique<optim::LBFGSOptions>(optim::LBFGSOptions().max_iter(5)));
  groups.pop_back();
  optim::LBFGS lbfgs(groups, optim::LBFGSOptions(0.5).max_eval(7).max_iter(9));
  const auto& options = static_cast<optim::LBFGSOptions&>(lbfgs.param_groups()[0].options());
  CHECK(options.lr() == 0.5 && options.max_iter() == 5);
}

RL_TEST(softmax_in_another_dtype) {
  namespace F = torch::nn::functional;
  const auto x = torch::arange(4.0F).reshape({2, 2});
  const auto wide = x.to(torch::kFloat64);
  CHECK(torch::equal(F::softmax(x, F::SoftmaxFuncOptions(1).dtype(torch::kFloat64)),
                     torch::softmax(wide, 1)));
  CHECK(torch::equal(F::log_softmax(x, F::LogSoftmaxFuncOptions(0).dtype(torch::kFloat64)),
                     torch::log_softmax(wide, 0)));
  CHECK(torch::equal(F::softmin(x, F::SoftminFuncOptions(1).dtype(torch::kFloat64)),
                     torch::softmax(-wide, 1)));
  CHECK(F::softmax(x, 1).dtype() == torch::kFloat32);
}

}  // namespace

RL_TEST_MAIN()
