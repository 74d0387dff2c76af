// What goes over the wire between a TCPStore and its server.
//
// A connection begins with eight bytes, which the server sends back. A message is its length (four
// bytes), one byte that says what is asked or answered, and fields: strings (length and bytes) and
// numbers of eight bytes, in the byte order of these machines. No length is believed: a message is
// bounded, and its memory grows with what has arrived.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <rushlight/distributed/store.h>

namespace rushlight::distributed::wire {

constexpr std::string_view greeting = "rlstore1";
constexpr size_t header_bytes = 4;
constexpr size_t max_message_bytes = max_value_bytes + 2 * max_key_bytes;
constexpr uint64_t max_fields = uint64_t{1} << 20;

enum class Ask : uint8_t {
  Set,
  Get,
  CompareSet,
  Add,
  Delete,
  Check,
  NumKeys,
  ListKeys,
  Wait,
  Append,
  MultiGet,
  MultiSet,
  Cancel,  // stop waiting: answered once, with Cancelled or with what had been waited for
};
enum class Answer : uint8_t { Done, Cancelled, Wrong };

// Makes a message.
class Writer {
 public:
  explicit Writer(uint8_t kind) : text_(header_bytes, '\0') { text_ += static_cast<char>(kind); }
  Writer& number(int64_t value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& string(std::string_view value) {
    const auto length = static_cast<uint32_t>(value.size());
    text_.append(reinterpret_cast<const char*>(&length), sizeof length);
    text_ += value;
    return *this;
  }
  Writer& strings(const std::vector<std::string>& values) {
    number(static_cast<int64_t>(values.size()));
    for (const std::string& value : values) {
      string(value);
    }
    return *this;
  }
  // The message, with its length.
  std::string take() {
    RL_CHECK_VALUE(text_.size() - header_bytes <= max_message_bytes, "TCPStore: a message of ",
                   text_.size(), " bytes is too long");
    const auto length = static_cast<uint32_t>(text_.size() - header_bytes);
    std::memcpy(text_.data(), &length, sizeof length);
    return std::move(text_);
  }

 private:
  std::string text_;
};

// Takes a message apart; NetworkError where it says more than it has.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  uint8_t kind() {
    const auto k = static_cast<uint8_t>(bytes(1)[0]);
    return k;
  }
  int64_t number() {
    int64_t value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string string() {
    uint32_t length;
    std::memcpy(&length, bytes(sizeof length).data(), sizeof length);
    return std::string(bytes(length));
  }
  std::vector<std::string> strings() {
    const auto count = static_cast<uint64_t>(number());
    RL_CHECK_AS(NetworkError, count <= max_fields, "TCPStore: a message with ", count, " fields");
    std::vector<std::string> out;
    for (uint64_t i = 0; i < count; i++) {
      out.push_back(string());
    }
    return out;
  }
  void end() const {
    RL_CHECK_AS(NetworkError, rest_.empty(), "TCPStore: a message longer than what it says");
  }

 private:
  std::string_view bytes(size_t count) {
    RL_CHECK_AS(NetworkError, count <= rest_.size(), "TCPStore: a message ends early");
    const std::string_view out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return out;
  }

  std::string_view rest_;
};

}  // namespace rushlight::distributed::wire
