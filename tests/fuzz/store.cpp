// libFuzzer target of the TCPStore's server: any bytes from several clients, whole messages or
// pieces of them, who come and go. It builds alone, with clang:
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc
//   tests/fuzz/store.cpp src/distributed/{tcp_server,store}.cpp src/core/{dtype,error}.cpp
//   -o /tmp/fuzz-store
//   /tmp/fuzz-store -max_len=512 -runs=10000000
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "distributed/tcp_server.h"

using namespace rushlight::distributed;

namespace {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint8_t byte() { return left_ == 0 ? 0 : (left_--, *at_++); }
  std::string bytes(size_t n) {
    std::string out;
    while (out.size() < n && left_ > 0) {
      out += static_cast<char>(byte());
    }
    return out;
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

class Clients {
 public:
  Clients() {
    for (size_t i = 0; i < peers_.size(); i++) {
      come(i);
    }
  }
  void send(size_t i, const std::string& bytes) {
    TcpPeer& peer = *peers_[i];
    peer.in += bytes;
    std::vector<TcpPeer*> touched;
    service_.received(peer, touched);
    for (TcpPeer* const other : touched) {
      other->out.clear();  // sent; a peer that is gone would be read here
    }
    if (peer.broken) {
      go(i);
    }
  }
  void go(size_t i) {
    service_.gone(*peers_[i]);
    come(i);
  }

 private:
  void come(size_t i) {
    peers_[i] = std::make_unique<TcpPeer>();
    peers_[i]->in = wire::greeting;
    std::vector<TcpPeer*> touched;
    service_.received(*peers_[i], touched);
  }
  StoreService service_;
  std::array<std::unique_ptr<TcpPeer>, 4> peers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  Clients clients;
  while (!input.empty()) {
    const uint8_t what = input.byte();
    const size_t who = what & 3;
    if ((what >> 2) % 8 == 0) {
      clients.go(who);
    } else if ((what >> 2) % 8 == 1) {
      clients.send(who, input.bytes(input.byte()));
    } else {
      // A message whose length is right.
      const uint8_t asked = input.byte();
      const std::string fields = input.bytes(input.byte());
      wire::Writer writer(asked % 16);
      std::string message = writer.take();
      message += fields;
      const auto length = static_cast<uint32_t>(message.size() - wire::header_bytes);
      std::memcpy(message.data(), &length, sizeof length);
      clients.send(who, message);
    }
  }
  return 0;
}
