// Streams, events and backward across streams, on a device that is made of host memory and writes
// down what it is asked for.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "core/backend.h"
#include "core/iterator.h"
#include "generated/kernels.h"

#include <rushlight/rushlight.h>

using namespace rushlight;

namespace {

constexpr Device here(kCUDA, 0);

struct Log {
  std::vector<std::string> lines;
  uint64_t current = 0;
  uint64_t made = 0;
  uintptr_t events = 0;
  int alive = 0;
  std::map<void*, uint64_t> recorded;
  bool has(const std::string& line) const {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  }
} journal;

template <class F>
void each(const TensorIterator& it, const F& f) {
  journal.lines.push_back(str(it.op(), " on ", journal.current));
  it.for_each([&](char** data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
      const auto at = [&](int k) -> float& {
        return *reinterpret_cast<float*>(data[k] + i * strides[k]);
      };
      at(0) = f(at(1), at(2));
    }
  });
}

const KernelTable kernels = [] {
  KernelTable table{};
  table.mul = [](const TensorIterator& it, const Scalar*) {
    each(it, [](float a, float b) { return a * b; });
  };
  table.add = [](const TensorIterator& it, const Scalar*) {
    each(it, [](float a, float b) { return a + b; });
  };
  return table;
}();

const Backend backend = {
    .interface_hash = "",
    .kernels = &kernels,
    .device_count = [] { return 1; },
    .resolve = [](Device) { return here; },
    .current_device = [] { return 0; },
    .set_device = [](Device) {},
    .synchronize = [](Device) { journal.lines.emplace_back("synchronize"); },
    .allocate = [](size_t bytes, Device) { return std::malloc(bytes); },
    .deallocate = [](void* data, size_t, void*) { std::free(data); },
    .copy = [](const Tensor& to, const Tensor& from,
               bool) { std::copy_n(from.data<float>(), from.numel(), to.data<float>()); },
    .fill =
        [](const Tensor& to, const Scalar& value) {
          std::fill_n(to.data<float>(), to.numel(), value.to<float>());
        },
    .allocate_pinned = [](size_t bytes) -> Storage {
      return StorageImpl::allocate(bytes, Device(kCPU));
    },
    .is_pinned = [](const void*) { return false; },
    .streams =
        {
            .make = [](Device, int) { return ++journal.made; },
            .current = [](Device) { return journal.current; },
            .set_current = [](Device, uint64_t stream) { journal.current = stream; },
            .query = [](Device, uint64_t) { return true; },
            .synchronize = [](Device, uint64_t) {},
            .wait =
                [](Device, uint64_t stream, void* event) {
                  journal.lines.push_back(str(stream, " waits for ", journal.recorded.at(event)));
                },
            .record_use = [](Device, uint64_t stream,
                             void*) { journal.lines.push_back(str("used on ", stream)); },
        },
    .events =
        {
            .make =
                [](Device, bool, bool) {
                  journal.alive++;
                  return reinterpret_cast<void*>(++journal.events);
                },
            .destroy = [](void*) { journal.alive--; },
            .record = [](Device, void* event,
                         uint64_t stream) { journal.recorded[event] = stream; },
            .query = [](void*) { return true; },
            .synchronize = [](void*) {},
            .elapsed = [](void*, void*) { return 1.5; },
        },
};

Tensor leaf(float value) {
  return full({4}, value, TensorOptions(kFloat32).device(here)).requires_grad_();
}

}  // namespace

RL_TEST(the_cpu_answers_trivially) {
  const Stream stream = Stream::current(Device(kCPU));
  CHECK(stream.query() && stream.id() == 0 && stream == Stream::make(Device(kCPU)));
  const Event event;
  CHECK(event.query() && !event.is_recorded());
  event.record(stream);
  stream.wait(event);
  event.synchronize();
  CHECK(event.is_recorded() && event.handle() == nullptr);
  synchronize(Device(kCPU));
  CHECK(stream_of(*(ones({2}).requires_grad_() * 2).grad_fn()) == Stream());
}

RL_TEST(streams_and_events) {
  CHECK(accelerator_type() == kCPU || !backend_path(kCUDA).empty());
  add_backend(kCUDA, backend);
  CHECK(accelerator_type() == kCUDA);
  CHECK_THROWS(Error, "cuda is there already", add_backend(kCUDA, backend));
  const Stream side = Stream::make(Device(kCUDA));
  CHECK(side.device() == here && side.id() != 0);
  {
    const StreamGuard guard(side);
    CHECK(Stream::current(here) == side);
  }
  CHECK(Stream::current(here).id() == 0);
  {
    const Event start({.timing = true});
    const Event end({.timing = true});
    CHECK_THROWS(ValueError, "must be recorded", start.elapsed(end));
    start.record(side);
    end.record(side);
    CHECK(start.elapsed(end) == 1.5 && journal.alive == 2);
    CHECK_THROWS(ValueError, "enable_timing=True", start.elapsed(Event()));
  }
  CHECK(journal.alive == 0);
  synchronize(here);
  CHECK(journal.has("synchronize"));
}

RL_TEST(backward_runs_where_forward_ran) {
  const Tensor a = leaf(2);
  const Tensor b = leaf(3);
  const Stream side = Stream::make(here);
  Tensor product;
  {
    const StreamGuard guard(side);
    product = a * b;
  }
  CHECK(stream_of(*product.grad_fn()) == side);
  const Tensor out = product * b;
  CHECK(stream_of(*out.grad_fn()) == Stream(here, 0));
  journal.lines.clear();
  run_backward({out}, {full({4}, 1, TensorOptions(kFloat32).device(here))}, false, false);
  const std::string on_side = str("mul on ", side.id());
  CHECK(journal.has(on_side) && journal.has("mul on 0"));
  CHECK(journal.has(str(side.id(), " waits for 0")));  // for the gradient of the product
  CHECK(journal.has(str("used on ", side.id())));
  CHECK(journal.has(str("0 waits for ", side.id())));  // leaves, and the caller in the end
  CHECK(journal.lines.back() == str("0 waits for ", side.id()));
  CHECK(journal.current == 0 && journal.alive == 0);
  CHECK(a.grad().data<float>()[0] == 9 && b.grad().data<float>()[0] == 12);
}

RL_TEST(one_stream_needs_no_event) {
  const Tensor a = leaf(2);
  const uintptr_t before = journal.events;
  run_backward({a * a}, {full({4}, 1, TensorOptions(kFloat32).device(here))}, false, false);
  CHECK(journal.events == before && a.grad().data<float>()[0] == 4);
}

RL_TEST_MAIN()
