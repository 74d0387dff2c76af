// Generators: seeds, PyTorch's state format, the default generator, and random numbers in double
// precision.
#include "core/generator.h"

#include <pthread.h>
#include <sys/random.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <utility>

#include <rushlight/error.h>
#include <rushlight/tensor.h>

#include "core/backend.h"
#include "core/op_support.h"
#include "core/recording.h"

namespace rushlight {
namespace {

constexpr uint64_t default_seed = 67280421310721;  // PyTorch's

// PyTorch's CPU generator state, 5056 bytes in the machine's order.
struct StateFormat {
  uint64_t seed;
  int32_t left;  // numbers until a new block is due, plus one
  int32_t seeded;
  uint64_t next;
  uint64_t state[Mt19937::n];
  double normal_x;  // unused
  double next_normal;
  double normal_rho;  // unused
  int32_t has_next_normal;
  int32_t padding;
  float next_float_normal;
  bool has_next_float_normal;
  char padding2[3];
};
static_assert(sizeof(StateFormat) == 5056);

uint64_t system_seed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
    seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return seed;
}

GeneratorImpl& impl_of(const Generator& g) {
  RL_CHECK(g.defined(), "this Generator is undefined; make one with Generator(device)");
  return *g;
}

// Never destroyed: tensors may still be made while the process ends.
const Generator& cpu_generator() {
  static const Generator* generator = [] {
    auto* g = new Generator(Device(kCPU));
    // The child gets the same state, and a lock that nobody holds.
    pthread_atfork([] { cpu_generator()->mutex.lock(); }, [] { cpu_generator()->mutex.unlock(); },
                   [] { cpu_generator()->mutex.unlock(); });
    return g;
  }();
  return *generator;
}

}  // namespace

void GeneratorImpl::set_seed(uint64_t value) {
  seed = value;
  offset = 0;
  seed_engine(engine, value);
  next_normal = 0;
  has_next_normal = false;
  next_float_normal = 0;
  has_next_float_normal = false;
}

Generator::Generator(Device device) {
  RL_CHECK(!device.is_meta(), "Device type meta is not supported for torch.Generator()");
  impl_ = std::make_shared<GeneratorImpl>(default_seed, resolve_device(device));
}

Device Generator::device() const { return impl_of(*this).device; }

void Generator::set_current_seed(uint64_t seed) const {
  refuse_in_recording("seeds a generator");
  GeneratorImpl& g = impl_of(*this);
  std::lock_guard<std::mutex> lock(g.mutex);
  g.set_seed(seed);
}

uint64_t Generator::initial_seed() const {
  GeneratorImpl& g = impl_of(*this);
  std::lock_guard<std::mutex> lock(g.mutex);
  return g.seed;
}

uint64_t Generator::seed() const {
  const uint64_t fresh = system_seed();
  set_current_seed(fresh);
  return fresh;
}

namespace {
GeneratorImpl& counting(const Generator& generator) {
  GeneratorImpl& g = impl_of(generator);
  RL_CHECK(!g.device.is_cpu(), "a generator of the CPU has no offset: its state is get_state()");
  return g;
}
}  // namespace

void Generator::set_offset(uint64_t offset) const {
  refuse_in_recording("sets the offset of a generator");
  GeneratorImpl& g = counting(*this);
  RL_CHECK(offset % 4 == 0, "offset must be a multiple of 4, but got ", offset);
  std::lock_guard<std::mutex> lock(g.mutex);
  g.offset = offset;
}

uint64_t Generator::get_offset() const {
  GeneratorImpl& g = counting(*this);
  std::lock_guard<std::mutex> lock(g.mutex);
  return g.offset;
}

std::vector<uint8_t> Generator::state_bytes() const {
  GeneratorImpl& g = impl_of(*this);
  if (!g.device.is_cpu()) {
    std::lock_guard<std::mutex> lock(g.mutex);
    const uint64_t state[] = {g.seed, g.offset};
    std::vector<uint8_t> bytes(sizeof state);
    std::memcpy(bytes.data(), state, sizeof state);
    return bytes;
  }
  StateFormat s{};
  {
    std::lock_guard<std::mutex> lock(g.mutex);
    const Mt19937& e = g.engine;
    s.seed = g.seed;
    s.left = e.just_seeded ? 1 : Mt19937::n - e.position + 1;
    s.seeded = 1;
    s.next = e.just_seeded ? 0 : static_cast<uint64_t>(e.position);
    for (int i = 0; i < Mt19937::n; i++) {
      s.state[i] = e.state[i];
    }
    s.has_next_normal = g.has_next_normal;
    s.next_normal = g.has_next_normal ? g.next_normal : 0;
    s.has_next_float_normal = g.has_next_float_normal;
    s.next_float_normal = g.has_next_float_normal ? g.next_float_normal : 0;
  }
  std::vector<uint8_t> bytes(sizeof s);
  std::memcpy(bytes.data(), &s, sizeof s);
  return bytes;
}

void Generator::set_state_bytes(const std::vector<uint8_t>& bytes) const {
  refuse_in_recording("sets the state of a generator");
  GeneratorImpl& g = impl_of(*this);
  if (!g.device.is_cpu()) {
    uint64_t state[2];
    RL_CHECK(bytes.size() == sizeof state, "RNG state is wrong size: expected ", sizeof state,
             " bytes, got ", bytes.size());
    std::memcpy(state, bytes.data(), sizeof state);
    RL_CHECK(state[1] % 4 == 0, "offset must be a multiple of 4, got ", state[1]);
    std::lock_guard<std::mutex> lock(g.mutex);
    g.set_seed(state[0]);
    g.offset = state[1];
    return;
  }
  RL_CHECK(bytes.size() == sizeof(StateFormat), "Expected a CPUGeneratorImplState of size ",
           sizeof(StateFormat), " but found the input RNG state size to be ", bytes.size());
  StateFormat s;
  // A bool read from a file may hold any byte.
  uint8_t has_float = 0;
  std::memcpy(&s, bytes.data(), offsetof(StateFormat, has_next_float_normal));
  std::memcpy(&has_float, bytes.data() + offsetof(StateFormat, has_next_float_normal), 1);
  const bool fresh = s.left == 1 && s.next == 0;
  const bool consistent = s.left >= 1 && s.left <= Mt19937::n &&
                          s.next == static_cast<uint64_t>(Mt19937::n + 1 - s.left);
  RL_CHECK(s.seeded == 1 && (fresh || consistent), "Invalid mt19937 state");
  std::lock_guard<std::mutex> lock(g.mutex);
  g.seed = s.seed;
  for (int i = 0; i < Mt19937::n; i++) {
    g.engine.state[i] = static_cast<uint32_t>(s.state[i]);
  }
  g.engine.just_seeded = fresh;
  g.engine.position = fresh ? Mt19937::n : static_cast<int>(s.next);
  g.has_next_normal = s.has_next_normal != 0;
  g.next_normal = s.next_normal;
  g.has_next_float_normal = has_float != 0;
  g.next_float_normal = s.next_float_normal;
}

Tensor Generator::get_state() const {
  const std::vector<uint8_t> bytes = state_bytes();
  const Tensor out = make_empty({static_cast<int64_t>(bytes.size())}, kByte, kCPU);
  std::copy(bytes.begin(), bytes.end(), out.data<uint8_t>());
  return out;
}

void Generator::set_state(const Tensor& state) const {
  RL_CHECK_TYPE(
      state.dtype() == kByte && state.is_cpu() && state.is_contiguous() && state.dim() == 1,
      "expected a torch.ByteTensor, but got a tensor of dtype ", state.dtype(), " and shape ",
      state.sizes());
  const uint8_t* data = state.data<uint8_t>();
  set_state_bytes(std::vector<uint8_t>(data, data + state.numel()));
}

Generator Generator::clone() const {
  Generator copy(device());
  copy.set_state_bytes(state_bytes());
  return copy;
}

namespace {

// The default generators of numbered devices; those not asked for yet start from `seed`.
struct DeviceGenerators {
  std::mutex mutex;
  std::map<std::pair<DeviceType, int>, Generator> made;
  uint64_t seed = default_seed;
};
DeviceGenerators& device_generators() {  // never destroyed, as above
  static auto* all = new DeviceGenerators();
  return *all;
}

}  // namespace

const Generator& default_generator(Device device) {
  if (device.is_cpu()) {
    return cpu_generator();
  }
  RL_CHECK(!device.is_meta(), "no default generator for device ", device.str());
  device = resolve_device(device);
  DeviceGenerators& all = device_generators();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto& place = all.made[{device.type(), device.index()}];
  if (!place.defined()) {
    place = Generator(std::make_shared<GeneratorImpl>(all.seed, device));
  }
  return place;
}

void manual_seed_devices(uint64_t seed) {
  DeviceGenerators& all = device_generators();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.seed = seed;
  for (const auto& [device, generator] : all.made) {
    generator.set_current_seed(seed);
  }
}

void manual_seed(uint64_t seed) {
  default_generator().set_current_seed(seed);
  manual_seed_devices(seed);
}

namespace random {

uint64_t take_offset(GeneratorImpl& g, uint64_t numbers) {
  const uint64_t from = g.offset;
  g.offset += (numbers + 3) / 4 * 4;
  return from;
}

uint64_t take_seed(GeneratorImpl& g) {
  return g.seed + 0x9e3779b97f4a7c15u * (take_offset(g, 4) / 4 + 1);
}

namespace {

double next_uniform(Mt19937& e) {
  return static_cast<double>(next_64(e) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

}  // namespace

double next_normal(GeneratorImpl& g) {
  if (g.has_next_normal) {
    g.has_next_normal = false;
    return g.next_normal;
  }
  const double angle = 2 * std::numbers::pi * next_uniform(g.engine);
  const double radius = std::sqrt(-2 * std::log1p(-next_uniform(g.engine)));
  g.next_normal = radius * std::sin(angle);
  g.has_next_normal = true;
  return radius * std::cos(angle);
}

void normal_from_uniform_16(double* x, double mean, double std) {
  for (int j = 0; j < 8; j++) {
    const double radius = std::sqrt(-2 * std::log(1 - x[j]));
    const double angle = 2 * std::numbers::pi * x[j + 8];
    x[j] = std::fma(radius * std::cos(angle), std, mean);
    x[j + 8] = std::fma(radius * std::sin(angle), std, mean);
  }
}

void exponential_from_uniform(double* x, int64_t n, double lambda) {
  for (int64_t i = 0; i < n; i++) {
    x[i] = -1 / lambda * std::log1p(-x[i]);
  }
}

}  // namespace random
}  // namespace rushlight
