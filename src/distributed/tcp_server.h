// The server of a TCPStore: one thread, any number of clients.
#pragma once

#include <thread>
#include <unordered_map>

#include "distributed/wire.h"

namespace rushlight::distributed {

// What a server knows of one client.
struct TcpPeer {
  std::string in;   // received, not yet understood
  std::string out;  // to be sent
  bool greeted = false;
  bool broken = false;
  // What it waits for, and whether it wants the values.
  bool waits = false;
  bool wants_values = false;
  bool wants_count = false;
  std::vector<std::string> keys;
};

// What the messages of clients do, without a socket in sight.
class RL_API StoreService {
 public:
  // Understands what has arrived for `peer`; answers go to `out` of it and of those who waited.
  // A peer whose bytes make no sense is marked broken.
  void on_input(TcpPeer& peer, std::vector<TcpPeer*>& touched);
  void on_close(TcpPeer& peer) { forget(peer); }

 private:
  void answer(TcpPeer& peer, wire::Reader message, std::vector<TcpPeer*>& touched);
  // The bytes of an answer that waits for nothing.
  std::string answer_at_once(wire::Ask ask, wire::Reader& message, std::vector<TcpPeer*>& touched);
  void wait(TcpPeer& peer, std::vector<std::string> keys);
  void reply(TcpPeer& peer);
  void wake_waiting(const std::string& key, std::vector<TcpPeer*>& touched);
  void forget(TcpPeer& peer);

  Values values_;
  std::unordered_map<std::string, std::vector<TcpPeer*>> waiting_;  // by the key that they lack
};

class RL_API TcpServer {
 public:
  // Listens where `host` is; port 0: any that is free.
  TcpServer(const std::string& host, uint16_t port, int listen_fd);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;
  uint16_t port() const { return port_; }

 private:
  struct Connection;
  void serve();
  void accept_all();
  bool read_some(Connection& c);
  bool write_some(Connection& c);
  void drop(int fd);
  void run(Connection& c);

  int listen_ = -1;
  int poll_ = -1;
  int stop_ = -1;
  int process_ = 0;
  uint16_t port_ = 0;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  StoreService service_;
  std::thread thread_;
};

}  // namespace rushlight::distributed
