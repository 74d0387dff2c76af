// Archives: tensors by name, nested, in .pt files that Python's load reads as a state dict.
#pragma once

#include <iosfwd>
#include <memory>

#include <rushlight/function.h>
#include <rushlight/serialize.h>

namespace rushlight {

// What a file of these would hold.
RL_API std::string bytes_of(const StateDict& state);
RL_API std::string bytes_of(const Tensor& tensor);
namespace detail {
template <class Read>
std::string read_all(Read&& read, size_t size) {
  std::string bytes(size, '\0');
  const size_t found = read(uint64_t(0), bytes.data(), size);
  RL_CHECK(found == size, "expected ", size, " bytes of an archive, got ", found);
  return bytes;
}
}  // namespace detail

namespace serialize {

class RL_API OutputArchive {
 public:
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  // A number: kept as a 0-d tensor.
  void write(const std::string& key, const IValue& value);
  void write(const std::string& key, const OutputArchive& nested);
  void save_to(const std::string& path) const;
  void save_to(std::ostream& stream) const;
  // To what takes bytes: write(data, size).
  template <class F, std::enable_if_t<std::is_invocable_v<F&, const void*, size_t>, int> = 0>
  void save_to(F&& write) const {
    const std::string bytes = bytes_of(state_);
    write(bytes.data(), bytes.size());
  }
  const StateDict& state() const { return state_; }

 private:
  StateDict state_;
};

class RL_API InputArchive {
 public:
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;
  bool try_read(const std::string& key, IValue& value) const;
  bool try_read(const std::string& key, InputArchive& nested) const;
  // RuntimeError where there is no such key.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;
  void read(const std::string& key, IValue& value) const;
  void read(const std::string& key, InputArchive& nested) const;
  std::vector<std::string> keys() const;
  void load_from(const std::string& path, std::optional<Device> device = {});
  void load_from(std::istream& stream, std::optional<Device> device = {});
  void load_from(const char* data, size_t n, std::optional<Device> device = {});
  // From what gives bytes: read(from, into, count), and size() of them.
  template <class Read, class Size,
            std::enable_if_t<std::is_invocable_v<Read&, uint64_t, void*, size_t> &&
                                 std::is_invocable_v<Size&>,
                             int> = 0>
  void load_from(Read&& read, Size&& size, std::optional<Device> device = {}) {
    const std::string bytes = detail::read_all(read, size());
    load_from(bytes.data(), bytes.size(), device);
  }
  const StateDict& state() const { return state_; }
  const std::string& path() const { return path_; }  // of the file; empty for memory and streams

 private:
  StateDict state_;
  std::string path_;
};

}  // namespace serialize

// The same as of files, to and from memory.
RL_API void save(const StateDict& state, std::ostream& stream);
RL_API void save(const Tensor& tensor, std::ostream& stream);
RL_API void save(const std::vector<Tensor>& tensors, std::ostream& stream);
RL_API StateDict load_state_dict(std::istream& stream);
RL_API StateDict load_state_dict(const char* data, size_t n);
RL_API void load(Tensor& tensor, std::istream& stream);
RL_API void load(std::vector<Tensor>& tensors, std::istream& stream);
RL_API void load(Tensor& tensor, const char* data, size_t n);
template <class F, std::enable_if_t<std::is_invocable_v<F&, const void*, size_t>, int> = 0>
void save(const Tensor& tensor, F&& write) {
  const std::string bytes = bytes_of(tensor);
  write(bytes.data(), bytes.size());
}
template <
    class Read, class Size,
    std::enable_if_t<
        std::is_invocable_v<Read&, uint64_t, void*, size_t> && std::is_invocable_v<Size&>, int> = 0>
void load(Tensor& tensor, Read&& read, Size&& size) {
  const std::string bytes = detail::read_all(read, size());
  load(tensor, bytes.data(), bytes.size());
}

// A value of no fixed type (None, numbers, strings, tensors, lists, tuples and dicts of these) as
// the bytes of a .pt file, which Python's save and load write and read too.
RL_API std::vector<char> pickle_save(const IValue& value);
RL_API IValue pickle_load(const std::vector<char>& data);
namespace jit {
using rushlight::pickle_load;
using rushlight::pickle_save;
}  // namespace jit

// Whatever writes itself to an archive: modules and their holders, optimisers.
template <class T, class... To>
auto save(const T& value, To&&... to)
    -> std::void_t<decltype(std::declval<serialize::OutputArchive&>() << value)> {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}
template <class T, class... From>
auto load(T& value, From&&... from)
    -> std::void_t<decltype(std::declval<serialize::InputArchive&>() >> value)> {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}

}  // namespace rushlight
