// Process groups and stores by libtorch's names: two processes, and the stores of one.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "check.h"

namespace {

using Bytes = std::vector<uint8_t>;

void uses(c10::intrusive_ptr<c10d::Store> store) {
  store->set("a", Bytes{1, 2, 0});
  CHECK((store->get("a") == Bytes{1, 2, 0}));
  CHECK(store->add("n", 3) == 3 && store->add("n", -1) == 2);
  CHECK(store->check({"a", "n"}) && !store->check({"a", "b"}));
  CHECK(store->compareSet("c", Bytes{}, Bytes{7}) == Bytes{7});
  CHECK(store->deleteKey("a") && !store->check({"a"}));
  CHECK_THROWS(c10d::DistStoreError, "none", store->wait({"none"}, std::chrono::milliseconds(20)));
  store->setTimeout(std::chrono::milliseconds(30));
  CHECK(store->getTimeout().count() == 30);
}

RL_TEST(stores) {
  uses(c10::make_intrusive<c10d::HashStore>());
  char path[] = "/tmp/rushlight_store_XXXXXX";
  close(mkstemp(path));
  uses(c10::make_intrusive<c10d::FileStore>(path, 1));
  unlink(path);
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto tcp = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  CHECK(tcp->getPort() != 0 && tcp->getHost() == "127.0.0.1");
  uses(tcp);
  const auto part = c10::make_intrusive<c10d::PrefixStore>("part", tcp);
  part->set("x", "1");
  CHECK(tcp->get_to_str("part/x") == "1" && part->getUnderlyingStore()->check({"part/x"}));
}

void together(int rank, uint16_t port) {
  c10d::TCPStoreOptions options;
  options.port = port;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  const auto settings = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(20));
  settings->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
  c10d::ProcessGroupGloo group(store, rank, 2, settings);
  CHECK(group.getRank() == rank && group.getSize() == 2 && group.getBackendName() == "gloo");

  std::vector<torch::Tensor> t = {torch::full({3}, rank + 1.0)};
  const auto work = group.allreduce(t);
  CHECK(work->wait() && work->isCompleted() && work->isSuccess());
  CHECK(torch::equal(t[0], torch::full({3}, 3.0)));
  CHECK(torch::equal(work->result()[0], t[0]));
  c10d::AllreduceOptions most;
  most.reduceOp = c10d::ReduceOp::MAX;
  t = {torch::tensor({rank, 1 - rank})};
  group.allreduce(t, most)->wait();
  CHECK(torch::equal(t[0], torch::tensor({1, 1})));

  c10d::BroadcastOptions from;
  from.rootRank = 1;
  t = {torch::full({2}, rank)};
  group.broadcast(t, from)->wait();
  CHECK(torch::equal(t[0], torch::full({2}, 1)));

  std::vector<torch::Tensor> own = {torch::full({2}, rank)};
  std::vector<std::vector<torch::Tensor>> lists = {{torch::empty({2}), torch::empty({2})}};
  own[0] = own[0].to(torch::kFloat);
  group.allgather(lists, own)->wait();
  CHECK(torch::equal(torch::stack(lists[0]), torch::tensor({{0.f, 0.f}, {1.f, 1.f}})));
  torch::Tensor all = torch::empty({4});
  group._allgather_base(all, own[0])->wait();
  CHECK(torch::equal(all, torch::tensor({0.f, 0.f, 1.f, 1.f})));
  torch::Tensor share = torch::empty({2});
  group._reduce_scatter_base(share, all)->wait();
  CHECK(torch::equal(share, torch::full({2}, 2.f * rank)));
  group.reduce_scatter(own, lists)->wait();
  CHECK(torch::equal(own[0], torch::full({2}, 2.f * rank)));

  std::vector<std::vector<torch::Tensor>> none;
  own = {torch::full({2}, 5.f + rank)};
  group.gather(rank == 0 ? lists : none, own)->wait();
  CHECK(rank != 0 || torch::equal(lists[0][1], torch::full({2}, 6.f)));
  group.scatter(own, rank == 0 ? lists : none)->wait();
  CHECK(torch::equal(own[0], torch::full({2}, 5.f + rank)));
  std::vector<torch::Tensor> sent = {torch::full({1}, rank), torch::full({1}, rank + 10)};
  std::vector<torch::Tensor> got = {torch::empty({1}), torch::empty({1})};
  for (torch::Tensor& part : got) {
    part = part.to(sent[0].scalar_type());
  }
  group.alltoall(got, sent)->wait();
  CHECK(got[0].item<int>() == rank * 10 && got[1].item<int>() == 1 + rank * 10);
  t = {torch::ones({2})};
  if (rank == 0) {
    group.send(t, 1, 4)->wait();
  } else {
    t[0].zero_();
    const auto received = group.recvAnysource(t, 4);
    received->wait();
    CHECK(received->sourceRank() == 0 && torch::equal(t[0], torch::ones({2})));
  }
  group.barrier()->wait();

  // What is wrong is refused before anything is sent.
  t = {torch::ones({2}), torch::ones({2})};
  CHECK_THROWS(rushlight::ValueError, "single-element tensor list", group.reduce(t));
  t.clear();
  CHECK_THROWS(rushlight::ValueError, "non-empty tensor list", group.allreduce(t));
  torch::Tensor odd = torch::empty({3});
  CHECK_THROWS(rushlight::ValueError, "times as many", group._allgather_base(odd, own[0]));
  from.rootRank = 2;
  CHECK_THROWS(rushlight::ValueError, "invalid root rank: 2", group.broadcast(own, from));
  group.barrier()->wait();

  // Who ends is named.
  if (rank == 1) {
    _exit(rushlight::testing::failures == 0 ? 0 : 1);
  }
  t = {torch::ones({4})};
  try {
    group.allreduce(t)->wait();
    CHECK(false);
  } catch (const c10d::DistBackendError& error) {
    CHECK(std::string(error.what()).find("lost rank 1") != std::string::npos);
  }
}

RL_TEST(two_processes) {
  if (rushlight::distributed::plugin_path("gloo").empty()) {
    std::printf("skipped: built without Gloo\n");
    return;
  }
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  int pipe_ends[2];
  CHECK(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    uint16_t port = 0;
    CHECK(read(pipe_ends[0], &port, sizeof port) == sizeof port);
    try {
      together(1, port);
    } catch (const std::exception& error) {
      std::printf("rank 1: %s\n", error.what());
    }
    _exit(1);
  }
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  const uint16_t port = store->getPort();
  CHECK(write(pipe_ends[1], &port, sizeof port) == sizeof port);
  together(0, port);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

RL_TEST_MAIN()
