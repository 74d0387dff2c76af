// TCPStore: values in one process, which a thread of it serves to all others.
#pragma once

#include <rushlight/distributed/store.h>

namespace rushlight::distributed {

class TcpServer;
class TcpClient;

struct TcpStoreOptions {
  uint16_t port = 29500;
  std::optional<int> world_size;
  bool is_master = false;
  Milliseconds timeout = Store::default_timeout;
  bool wait_for_workers = true;
  bool multi_tenant = false;  // share the server of this process on the same port
  int listen_fd = -1;         // a socket that listens already, which becomes the server's
};

class RL_API TcpStore : public Store {
 public:
  TcpStore(std::string host, const TcpStoreOptions& options);
  ~TcpStore() override;
  const std::string& host() const { return host_; }
  uint16_t port() const { return port_; }

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool delete_key(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t num_keys() override;
  std::vector<std::string> list_keys() override;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  std::shared_ptr<Store> clone() override;
  void append(const std::string& key, const std::string& value) override;
  std::vector<std::string> multi_get(const std::vector<std::string>& keys) override;
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::string>& values) override;
  bool has_extended_api() const override { return true; }
  bool serves() const { return server_ != nullptr; }
  std::string client_address() const;  // see `local_address`

 private:
  TcpStore(const TcpStore& other);  // for `clone`

  std::string host_;
  uint16_t port_;
  std::shared_ptr<TcpServer> server_;
  std::unique_ptr<TcpClient> client_;
};

// The address by which this machine reaches a store's server; empty where that is the loopback
// interface, or the store has none.
RL_API std::string local_address(const Store& store);

}  // namespace rushlight::distributed
