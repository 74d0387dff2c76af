// The client of a TCPStore, and how stores share servers.
#include <rushlight/distributed/tcp_store.h>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "distributed/tcp_server.h"

namespace rushlight::distributed {

using wire::Answer;
using wire::Ask;

namespace {

const std::string workers_key = "init/";  // counted, as in PyTorch, among a store's keys

Milliseconds time_left(Clock::time_point deadline) {
  return std::max(Milliseconds(0),
                  std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()));
}

// The servers of this process that stores share, by port.
std::mutex servers_mutex;
std::map<uint16_t, std::weak_ptr<TcpServer>>& servers() {
  static auto& all = *new std::map<uint16_t, std::weak_ptr<TcpServer>>;
  return all;
}

std::shared_ptr<TcpServer> serve(const std::string& host, const TcpStoreOptions& options) {
  if (!options.multi_tenant) {
    return std::make_shared<TcpServer>(host, options.port, options.listen_fd);
  }
  const std::lock_guard<std::mutex> lock(servers_mutex);
  if (auto server = servers()[options.port].lock(); server != nullptr && options.port != 0) {
    return server;
  }
  auto server = std::make_shared<TcpServer>(host, options.port, options.listen_fd);
  servers()[server->port()] = server;
  return server;
}

}  // namespace

// A connection; one request at a time.
class TcpClient {
 public:
  TcpClient(std::string host, uint16_t port, Milliseconds timeout)
      : host_(std::move(host)), port_(port) {
    connect(timeout);
  }
  ~TcpClient() { end(); }
  TcpClient(const TcpClient&) = delete;
  TcpClient& operator=(const TcpClient&) = delete;

  // Sends a message and returns the fields of its answer, which comes at once.
  std::string request(std::string message, Milliseconds timeout) {
    const std::lock_guard<std::mutex> lock(mutex_);
    send_all(message, Clock::now() + timeout);
    return receive(Clock::now() + timeout).value_or("");
  }
  // The same where the answer may be long in coming: nothing where `timeout` has passed.
  std::optional<std::string> request_and_wait(std::string message, Milliseconds timeout) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto deadline = Clock::now() + timeout;
    send_all(message, deadline + Milliseconds(1000));
    if (ready(POLLIN, deadline)) {
      return receive(Clock::now() + Milliseconds(60'000));
    }
    send_all(wire::Writer(static_cast<uint8_t>(Ask::Cancel)).take(),
             Clock::now() + Milliseconds(5000));
    return receive(Clock::now() + Milliseconds(5000));
  }

  std::string local_address() const {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    char text[NI_MAXHOST];
    if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
        getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text, sizeof text, nullptr,
                    0, NI_NUMERICHOST) != 0) {
      return "";
    }
    std::string found = text;
    if (found.rfind("::ffff:", 0) == 0) {
      found.erase(0, 7);  // of version 4
    }
    return found.rfind("127.", 0) == 0 || found == "::1" ? "" : found;
  }

 private:
  void end() {
    if (fd_ >= 0) {
      close(fd_);
      fd_ = -1;
    }
  }
  [[noreturn]] void raise_lost_connection(const std::string& how) {
    end();
    throw NetworkError(str("The connection to the TCPStore at ", host_, ":", port_, " ", how,
                           ". Did the server end?"));
  }

  void connect(Milliseconds timeout) {
    const auto deadline = Clock::now() + timeout;
    std::string why = "no answer";
    for (auto pause = Milliseconds(2);; pause = std::min(2 * pause, Milliseconds(500))) {
      addrinfo hints{};
      hints.ai_socktype = SOCK_STREAM;
      addrinfo* found = nullptr;
      const int status = getaddrinfo(host_.c_str(), std::to_string(port_).c_str(), &hints, &found);
      if (status != 0) {
        why = gai_strerror(status);
      }
      const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
      for (const addrinfo* a = found; status == 0 && a != nullptr; a = a->ai_next) {
        if (try_address(*a, deadline, why)) {
          return;
        }
      }
      RL_CHECK_AS(NetworkError, Clock::now() + pause < deadline,
                  "The client socket has timed out after ", timeout.count(),
                  "ms while trying to connect to (", host_, ", ", port_, "): ", why);
      std::this_thread::sleep_for(pause);
    }
  }

  bool try_address(const addrinfo& address, Clock::time_point deadline, std::string& why) {
    fd_ = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    try {
      if (fd_ >= 0) {
        if (::connect(fd_, address.ai_addr, address.ai_addrlen) != 0 && errno == EINPROGRESS &&
            ready(POLLOUT, deadline)) {
          socklen_t length = sizeof errno;
          int error = 0;
          getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length);
          errno = error;
        } else if (errno == EINPROGRESS) {
          errno = ETIMEDOUT;
        }
        if (is_connected()) {
          const int yes = 1;
          setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
          send_all(wire::greeting, deadline);
          char answer[wire::greeting.size()];
          const auto soon = std::min(deadline, Clock::now() + Milliseconds(10'000));
          receive_bytes(answer, sizeof answer, soon);
          if (std::string_view(answer, sizeof answer) == wire::greeting) {
            return true;
          }
          why = "what answers there is no TCPStore of rushlight";
          end();
          return false;
        }
      }
      why = std::strerror(errno);
    } catch (const Error& e) {
      why = e.what();
    }
    end();
    return false;
  }
  bool is_connected() const {
    sockaddr_storage peer;
    socklen_t length = sizeof peer;
    const int error = errno;
    const bool connected = getpeername(fd_, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
    errno = connected ? 0 : (error != 0 ? error : errno);
    return connected;
  }

  // Whether the socket can be read or written by then.
  bool ready(short events, Clock::time_point deadline) {
    while (true) {
      pollfd p{fd_, events, 0};
      const auto most = std::min<int64_t>(time_left(deadline).count(), 3'600'000);
      const int n = poll(&p, 1, static_cast<int>(most));
      if (n > 0) {
        return true;
      }
      if ((n == 0 && Clock::now() >= deadline) || (n < 0 && errno != EINTR)) {
        return false;
      }
    }
  }
  void send_all(std::string_view text, Clock::time_point deadline) {
    RL_CHECK_AS(NetworkError, fd_ >= 0, "The connection to the TCPStore at ", host_, ":", port_,
                " has ended");
    while (!text.empty()) {
      const ssize_t n = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n > 0) {
        text.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EAGAIN && errno != EINTR) {
        raise_lost_connection(str("failed: ", std::strerror(errno)));
      } else if (!ready(POLLOUT, deadline)) {
        raise_lost_connection("has timed out");
      }
    }
  }
  void receive_bytes(char* to, size_t count, Clock::time_point deadline) {
    while (count != 0) {
      const ssize_t n = recv(fd_, to, count, 0);
      if (n > 0) {
        to += n;
        count -= static_cast<size_t>(n);
      } else if (n == 0) {
        raise_lost_connection("was closed");
      } else if (errno != EAGAIN && errno != EINTR) {
        raise_lost_connection(str("failed: ", std::strerror(errno)));
      } else if (!ready(POLLIN, deadline)) {
        raise_lost_connection("has timed out");
      }
    }
  }
  // The fields of an answer; nothing where it says that waiting was cancelled.
  std::optional<std::string> receive(Clock::time_point deadline) {
    uint32_t length;
    receive_bytes(reinterpret_cast<char*>(&length), sizeof length, deadline);
    if (length == 0 || length > wire::max_message_bytes) {
      raise_lost_connection("brought what is no answer");
    }
    std::string text;
    while (text.size() < length) {  // memory grows with what comes
      const size_t part = std::min<size_t>(length - text.size(), size_t{1} << 20);
      text.resize(text.size() + part);
      receive_bytes(text.data() + text.size() - part, part, deadline);
    }
    switch (static_cast<Answer>(text[0])) {
      case Answer::Done:
        return text.substr(1);
      case Answer::Cancelled:
        return std::nullopt;
      case Answer::Wrong:
        throw ValueError(wire::Reader(std::string_view(text).substr(1)).string());
    }
    raise_lost_connection("brought what is no answer");
  }

  std::string host_;
  uint16_t port_;
  int fd_ = -1;
  std::mutex mutex_;
};

namespace {

wire::Writer begin_request(Ask ask) { return wire::Writer(static_cast<uint8_t>(ask)); }

void check_sizes(const std::string& key, const std::string& value) {
  RL_CHECK_VALUE(key.size() <= max_key_bytes, "TCPStore: a key of ", key.size(), " bytes");
  RL_CHECK_VALUE(value.size() <= max_value_bytes, "TCPStore: a value of ", value.size(), " bytes");
}

void check_keys(const std::vector<std::string>& keys) {
  RL_CHECK_VALUE(keys.size() <= wire::max_fields, "TCPStore: ", keys.size(), " keys at once");
  for (const std::string& key : keys) {
    check_sizes(key, "");
  }
}

}  // namespace

TcpStore::TcpStore(std::string host, const TcpStoreOptions& options)
    : host_(std::move(host)), port_(options.port) {
  Store::set_timeout(options.timeout);
  if (options.is_master) {
    server_ = serve(host_, options);
    port_ = server_->port();
  }
  client_ = std::make_unique<TcpClient>(host_, port_, options.timeout);
  if (!options.wait_for_workers || !options.world_size.has_value()) {
    return;
  }
  const int world = *options.world_size;
  const auto deadline = Clock::now() + options.timeout;
  int64_t joined = add(workers_key, 1);
  if (!options.is_master) {
    return;
  }
  for (auto pause = Milliseconds(1); joined < world;
       pause = std::min(2 * pause, Milliseconds(50))) {
    RL_CHECK_AS(StoreError, Clock::now() < deadline, "Timed out after ",
                (options.timeout.count() + 999) / 1000, " seconds waiting for clients. ", joined,
                "/", world, " clients joined.");
    std::this_thread::sleep_for(pause);
    joined = add(workers_key, 0);
  }
}

TcpStore::TcpStore(const TcpStore& other)
    : host_(other.host_), port_(other.port_), server_(other.server_) {
  Store::set_timeout(other.timeout());
  client_ = std::make_unique<TcpClient>(host_, port_, timeout());
}

TcpStore::~TcpStore() = default;

void TcpStore::set(const std::string& key, const std::string& value) {
  check_sizes(key, value);
  client_->request(begin_request(Ask::Set).string(key).string(value).take(), timeout());
}

std::string TcpStore::get(const std::string& key) {
  check_sizes(key, "");
  const auto answer =
      client_->request_and_wait(begin_request(Ask::Get).string(key).take(), timeout());
  RL_CHECK_AS(StoreError, answer.has_value(), "wait timeout after ", timeout().count(),
              "ms, keys: /", key);
  return wire::Reader(*answer).string();
}

std::string TcpStore::compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) {
  check_sizes(key, expected);
  check_sizes(key, desired);
  const std::string answer = client_->request(
      begin_request(Ask::CompareSet).string(key).string(expected).string(desired).take(),
      timeout());
  return wire::Reader(answer).string();
}

int64_t TcpStore::add(const std::string& key, int64_t amount) {
  check_sizes(key, "");
  const std::string answer =
      client_->request(begin_request(Ask::Add).string(key).number(amount).take(), timeout());
  return wire::Reader(answer).number();
}

bool TcpStore::delete_key(const std::string& key) {
  check_sizes(key, "");
  const std::string answer =
      client_->request(begin_request(Ask::Delete).string(key).take(), timeout());
  return wire::Reader(answer).number() != 0;
}

bool TcpStore::check(const std::vector<std::string>& keys) {
  check_keys(keys);
  const std::string answer =
      client_->request(begin_request(Ask::Check).strings(keys).take(), timeout());
  return wire::Reader(answer).number() != 0;
}

int64_t TcpStore::num_keys() {
  const std::string answer = client_->request(begin_request(Ask::NumKeys).take(), timeout());
  return wire::Reader(answer).number();
}

std::vector<std::string> TcpStore::list_keys() {
  const std::string answer = client_->request(begin_request(Ask::ListKeys).take(), timeout());
  return wire::Reader(answer).strings();
}

void TcpStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  check_keys(keys);
  const auto answer =
      client_->request_and_wait(begin_request(Ask::Wait).strings(keys).take(), timeout);
  RL_CHECK_AS(StoreError, answer.has_value(), "wait timeout after ", timeout.count(),
              "ms, keys: ", join_keys(keys));
}

std::shared_ptr<Store> TcpStore::clone() { return std::shared_ptr<Store>(new TcpStore(*this)); }

void TcpStore::append(const std::string& key, const std::string& value) {
  check_sizes(key, value);
  client_->request(begin_request(Ask::Append).string(key).string(value).take(), timeout());
}

std::vector<std::string> TcpStore::multi_get(const std::vector<std::string>& keys) {
  check_keys(keys);
  const auto answer =
      client_->request_and_wait(begin_request(Ask::MultiGet).strings(keys).take(), timeout());
  RL_CHECK_AS(StoreError, answer.has_value(), "wait timeout after ", timeout().count(),
              "ms, keys: ", join_keys(keys));
  return wire::Reader(*answer).strings();
}

void TcpStore::multi_set(const std::vector<std::string>& keys,
                         const std::vector<std::string>& values) {
  check_keys(keys);
  RL_CHECK_VALUE(keys.size() == values.size(), "multi_set: ", keys.size(), " keys but ",
                 values.size(), " values");
  client_->request(begin_request(Ask::MultiSet).strings(keys).strings(values).take(), timeout());
}

std::string TcpStore::client_address() const { return client_->local_address(); }

std::string local_address(const Store& store) {
  const Store* inner = &store;
  while (const auto* prefixed = dynamic_cast<const PrefixStore*>(inner)) {
    inner = prefixed->underlying().get();
  }
  const auto* const tcp = dynamic_cast<const TcpStore*>(inner);
  return tcp == nullptr ? "" : tcp->client_address();
}

}  // namespace rushlight::distributed
