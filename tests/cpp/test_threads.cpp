// Several threads at once, with no lock of Python's between them: tangents, graphs that are
// differentiated twice, one reader of a checkpoint, regions of `compile` whose memory others read,
// write and drop. For ThreadSanitizer above all (./dev sanitize).
#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>

#include <rushlight/forward.h>
#include <rushlight/rushlight.h>

#include "check.h"
#include "core/region.h"
#include "cpu/chain.h"
#include "cpu/jit.h"
#include "serialize/checkpoint.h"
#include "string_sink.h"

using namespace rushlight;

namespace {

constexpr int64_t n = 10'000;  // elements: enough to be noted
constexpr int num_threads = 4;
constexpr int rounds = 25;

// work(i) in threads that start together, with one thread for an op and with three.
template <class F>
void together(F work, int size = num_threads) {
  for (const int threads_of_an_op : {1, 3}) {
    set_num_threads(threads_of_an_op);
    std::barrier start(size);
    std::vector<std::thread> team;
    for (int i = 0; i < size; i++) {
      team.emplace_back([&, i] {
        start.arrive_and_wait();
        work(i);
      });
    }
    for (std::thread& thread : team) {
      thread.join();
    }
  }
  set_num_threads(1);
}

Tensor numbers() { return arange(n, TensorOptions(kFloat32)) / 1000; }

// Where threads leave tensors for each other.
class Mailbox {
 public:
  explicit Mailbox(const Tensor& first) : tensors_(2 * num_threads, first) {}
  // Leaves one and takes another.
  Tensor exchange(Tensor t) {
    const std::lock_guard guard(lock_);
    place_ = (place_ + 3) % tensors_.size();
    std::swap(tensors_[place_], t);
    return t;
  }

 private:
  std::mutex lock_;
  std::vector<Tensor> tensors_;
  size_t place_ = 0;
};

// ---- derivatives ----

RL_TEST(tangents_of_a_shared_tensor) {
  const Tensor shared = numbers();
  const Tensor view = shared.narrow(0, 10, 20);
  std::atomic<int> right{0};
  together([&](int i) {
    for (int round = 0; round < rounds; round++) {
      const uint64_t level = forward::enter_level();
      const double factor = i + round + 1;
      const Tensor dual = forward::make_dual(shared, full_like(shared, factor), level);
      const Tensor found = forward::tangent(dual.sin() * 2, level);
      const Tensor of_view = forward::make_dual(view, full_like(view, factor), level);
      const Tensor found_of_view = forward::tangent(of_view.exp(), level);
      forward::exit_level(level);
      right += allclose(found, shared.cos() * (2 * factor)) ? 1 : 0;
      right += allclose(found_of_view, view.exp() * factor) ? 1 : 0;
    }
  });
  CHECK(right == 2 * 2 * num_threads * rounds);
}

RL_TEST(a_shared_graph_is_recorded_by_backward) {
  Tensor x = linspace(0.5, 2, 40, TensorOptions(kFloat64));
  x.requires_grad_();
  const Tensor shared = (x * x * x * x.exp().log()).sum();
  std::atomic<int> right{0};
  together([&](int) {
    for (int round = 0; round < rounds; round++) {
      const Tensor first = run_grad({shared}, {x}, {}, true, true, false)[0];
      const Tensor second = run_grad({first.sum()}, {x}, {}, true, false, false)[0];
      right += allclose(first, 4 * x * x * x) && allclose(second, 12 * x * x) ? 1 : 0;
    }
  });
  CHECK(right == 2 * num_threads * rounds);
}

// ---- files ----

RL_TEST(eight_threads_read_one_checkpoint) {
  testing::StringSink sink;
  serialize::CheckpointWriter writer(sink, "file");
  writer.add_objects("N.");
  for (int key = 0; key < 40; key++) {
    writer.add_storage(std::to_string(key),
                       full({1000 + key}, key, TensorOptions(kFloat32)).storage());
  }
  writer.finish();
  serialize::CheckpointReader reader(
      serialize::memory_source(sink.bytes.data(), sink.bytes.size(), nullptr), false);
  std::vector<std::vector<Storage>> found(8, std::vector<Storage>(40));
  std::atomic<int> right{0};
  together(
      [&](int i) {
        for (int k = 0; k < 40; k++) {
          const int key = i % 2 == 0 ? k : 39 - k;
          const Storage storage = reader.storage(std::to_string(key), kFloat32, 1000 + key);
          right += static_cast<const float*>(storage->data())[999] == static_cast<float>(key);
          found[static_cast<size_t>(i)][static_cast<size_t>(key)] = storage;
        }
      },
      8);
  CHECK(right == 2 * 8 * 40);
  for (const auto& storages : found) {
    CHECK(storages == found[0]);
  }
}

// ---- regions ----

RL_TEST(each_thread_has_a_region_of_its_own) {
  const Tensor shared = numbers();
  std::atomic<int> right{0};
  together([&](int i) {
    const Tensor expected = (shared * i - 3).relu() * shared + shared.exp();
    for (int round = 0; round < rounds; round++) {
      Tensor found;
      {
        Region region;
        found = (shared * i - 3).relu() * shared + shared.exp();
        region.close();
      }
      right += equal(found, expected) ? 1 : 0;
    }
  });
  CHECK(right == 2 * num_threads * rounds);
}

// A thread reads what others note, by an op that is noted itself, by a reduction and by address,
// while those go on with it.
RL_TEST(results_are_read_by_other_threads) {
  const Tensor shared = numbers();
  std::atomic<int> right{0};
  Mailbox box(shared + 1);
  together([&](int i) {
    std::optional<Region> region;
    if (i != 0) {  // one thread reads without a region
      region.emplace();
    }
    for (int round = 0; round < 4 * rounds; round++) {
      const Tensor noted = shared * (i + 1) + 1;
      const Tensor other = box.exchange(noted);
      const Tensor more = noted * 2;  // the other may be completing `noted`
      const Tensor factor = (other - 1) / shared.clamp_min(0.001);
      const float found = round % 3 == 0   ? factor.max().item().to<float>()
                          : round % 3 == 1 ? factor.data_ptr<float>()[n - 1]
                                           : factor.select(0, n / 2).item().to<float>();
      right += found > 0.99F && found < num_threads + 0.01F ? 1 : 0;
      right += more.data_ptr<float>()[0] == 2 ? 1 : 0;
    }
  });
  CHECK(right == 2 * 2 * num_threads * 4 * rounds);
}

// What a thread has noted to read keeps its values when another one writes there afterwards, at
// once or noted.
RL_TEST(writes_come_after_what_others_noted_to_read) {
  Tensor x = zeros({n}, TensorOptions(kFloat32));
  std::atomic<int> right{0};
  std::barrier<> phase(2);
  int written = 0;
  together(
      [&](int i) {
        Region region;
        for (int round = 0; round < 2 * rounds; round++) {
          if (i == 0) {
            const Tensor noted = x * 2 + 1;
            const Tensor expected = full({n}, 2 * written + 1, TensorOptions(kFloat32));
            phase.arrive_and_wait();
            phase.arrive_and_wait();  // x has been written
            right += equal(noted, expected) ? 1 : 0;
            phase.arrive_and_wait();
          } else {
            phase.arrive_and_wait();
            if (round % 2 == 0) {
              x.add_(1);
            } else {
              const RunNow now;
              x.add_(1);
            }
            written++;
            phase.arrive_and_wait();
            phase.arrive_and_wait();
          }
        }
      },
      2);
  CHECK(right == 2 * 2 * rounds);
  CHECK(equal(x, full({n}, 4 * rounds, TensorOptions(kFloat32))));
}

// Pending results die where nobody noted them, perhaps as their chain is completed.
RL_TEST(results_die_in_other_threads) {
  const Tensor shared = numbers();
  std::atomic<int> right{0};
  Mailbox box(shared);
  together([&](int i) {
    Region region;
    for (int round = 0; round < 8 * rounds; round++) {
      Tensor noted = shared + i;
      const Tensor kept = noted * 2;
      noted = Tensor();
      box.exchange(kept.add(1));
      box.exchange(shared.mul(round));
      if (round % 5 == 0) {
        right += kept.data_ptr<float>()[1000] == static_cast<float>(2 * (1 + i)) ? 1 : 0;
      }
    }
  });
  CHECK(right == 2 * num_threads * 8 * rounds / 5);
}

RL_TEST(code_is_dropped_while_it_runs) {
  const Tensor shared = numbers();
  std::atomic<int> right{0};
  together([&](int i) {
    for (int round = 0; round < 4 * rounds; round++) {
      if (i == 0) {
        cpu::clear_jit_cache();
        right++;
        continue;
      }
      Tensor found = shared;
      {
        Region region;
        for (int step = 0; step <= (i + round) % 7; step++) {
          found = step % 2 == 0 ? found * 2 : found + 1;
        }
        region.close();
      }
      Tensor expected = shared;
      for (int step = 0; step <= (i + round) % 7; step++) {
        expected = step % 2 == 0 ? expected * 2 : expected + 1;
      }
      right += equal(found, expected) ? 1 : 0;
    }
  });
  CHECK(right == 2 * num_threads * 4 * rounds);
}

// Counts of a thread grow as others complete its chains.
RL_TEST(counts_are_read_while_others_complete) {
  const Tensor shared = numbers();
  Mailbox box(shared + 1);
  together([&](int) {
    Region region;
    int64_t before = Notebook::of_thread()->counts().steps;
    for (int round = 0; round < 4 * rounds; round++) {
      const Tensor other = box.exchange(shared + 1);
      CHECK(other.data_ptr<float>()[0] == 1);
      const int64_t now = Notebook::of_thread()->counts().steps;
      CHECK(now >= before);
      before = now;
    }
  });
}

RL_TEST(backward_of_what_a_region_recorded) {
  Tensor x = numbers();
  x.requires_grad_();
  Tensor shared;
  {
    Region region;
    shared = ((x * 2 + 1).tanh() * x).sum();
    region.close();
  }
  const Tensor expected = run_grad({shared}, {x}, {}, true, false, false)[0];
  std::atomic<int> right{0};
  together([&](int i) {
    for (int round = 0; round < rounds; round++) {
      const Tensor found = run_grad({shared}, {x}, {}, true, i % 2 == 0, false)[0];
      right += equal(found, expected) ? 1 : 0;
    }
    ((x * 2 + 1).tanh() * x).sum().backward();
  });
  CHECK(right == 2 * num_threads * rounds);
  CHECK(allclose(x.grad(), expected * (2 * num_threads)));
}

}  // namespace

RL_TEST_MAIN()
