#include "distributed/tcp_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace rushlight::distributed {

using wire::Answer;
using wire::Ask;

// ---- what messages do ----

void StoreService::on_input(TcpPeer& peer, std::vector<TcpPeer*>& touched) {
  size_t at = 0;
  const std::string_view in = peer.in;
  if (!peer.greeted) {
    const std::string_view start = in.substr(0, wire::greeting.size());
    if (start != wire::greeting.substr(0, start.size())) {
      peer.broken = true;
      return;
    }
    if (start.size() < wire::greeting.size()) {
      return;
    }
    peer.greeted = true;
    peer.out += wire::greeting;
    at = start.size();
    touched.push_back(&peer);
  }
  try {
    while (in.size() - at >= wire::header_bytes) {
      uint32_t length;
      std::memcpy(&length, in.data() + at, sizeof length);
      if (length == 0 || length > wire::max_message_bytes) {
        peer.broken = true;
        return;
      }
      if (in.size() - at - wire::header_bytes < length) {
        break;
      }
      answer(peer, wire::Reader(in.substr(at + wire::header_bytes, length)), touched);
      at += wire::header_bytes + length;
    }
    peer.in.erase(0, at);
  } catch (const NetworkError&) {
    peer.broken = true;
  }
}

namespace {

std::string field(std::string s, size_t most) {
  RL_CHECK_AS(NetworkError, s.size() <= most, "TCPStore: a field of ", s.size(), " bytes");
  return s;
}
std::string key_of(wire::Reader& message) { return field(message.string(), max_key_bytes); }
std::string value_of(wire::Reader& message) { return field(message.string(), max_value_bytes); }
std::vector<std::string> keys_of(wire::Reader& message) {
  std::vector<std::string> keys = message.strings();
  for (const std::string& key : keys) {
    RL_CHECK_AS(NetworkError, key.size() <= max_key_bytes, "TCPStore: a key too long");
  }
  return keys;
}

}  // namespace

void StoreService::answer(TcpPeer& peer, wire::Reader message, std::vector<TcpPeer*>& touched) {
  const auto ask = static_cast<Ask>(message.kind());
  if (peer.waits != (ask == Ask::Cancel)) {
    // What was to be cancelled has been answered meanwhile; anything else while waiting is wrong.
    RL_CHECK_AS(NetworkError, ask == Ask::Cancel, "TCPStore: asked while waiting");
    return;
  }
  try {
    if (ask == Ask::Get || ask == Ask::MultiGet || ask == Ask::Wait) {
      std::vector<std::string> keys =
          ask == Ask::Get ? std::vector<std::string>{key_of(message)} : keys_of(message);
      message.end();
      peer.wants_values = ask != Ask::Wait;
      peer.wants_count = ask == Ask::MultiGet;
      touched.push_back(&peer);
      wait(peer, std::move(keys));
      return;
    }
    if (ask == Ask::Cancel) {
      message.end();
      forget(peer);
      peer.out += wire::Writer(static_cast<uint8_t>(Answer::Cancelled)).take();
    } else {
      peer.out += answer_at_once(ask, message, touched);
    }
  } catch (const ValueError& e) {
    peer.out += wire::Writer(static_cast<uint8_t>(Answer::Wrong)).string(e.what()).take();
  }
  touched.push_back(&peer);
}

std::string StoreService::answer_at_once(Ask ask, wire::Reader& message,
                                         std::vector<TcpPeer*>& touched) {
  wire::Writer done(static_cast<uint8_t>(Answer::Done));
  switch (ask) {
    case Ask::Set: {
      const std::string key = key_of(message);
      std::string value = value_of(message);
      message.end();
      values_.set(key, std::move(value));
      wake_waiting(key, touched);
      break;
    }
    case Ask::Append: {
      const std::string key = key_of(message);
      const std::string value = value_of(message);
      message.end();
      values_.append(key, value);
      wake_waiting(key, touched);
      break;
    }
    case Ask::CompareSet: {
      const std::string key = key_of(message);
      const std::string expected = value_of(message);
      const std::string desired = value_of(message);
      message.end();
      done.string(values_.compare_set(key, expected, desired));
      wake_waiting(key, touched);
      break;
    }
    case Ask::Add: {
      const std::string key = key_of(message);
      const int64_t amount = message.number();
      message.end();
      done.number(values_.add(key, amount));
      wake_waiting(key, touched);
      break;
    }
    case Ask::Delete: {
      const std::string key = key_of(message);
      message.end();
      done.number(values_.erase(key) ? 1 : 0);
      break;
    }
    case Ask::Check:
      done.number(values_.has(keys_of(message)) ? 1 : 0);
      message.end();
      break;
    case Ask::NumKeys:
      message.end();
      done.number(static_cast<int64_t>(values_.size()));
      break;
    case Ask::ListKeys:
      message.end();
      done.strings(values_.keys());
      break;
    case Ask::MultiSet: {
      const std::vector<std::string> keys = keys_of(message);
      const std::vector<std::string> values = message.strings();
      message.end();
      RL_CHECK_AS(NetworkError, keys.size() == values.size(), "TCPStore: keys without values");
      for (size_t i = 0; i < keys.size(); i++) {
        values_.set(keys[i], values[i]);
        wake_waiting(keys[i], touched);
      }
      break;
    }
    default:
      throw NetworkError("TCPStore: an unknown message");
  }
  return done.take();
}

// Answers at once, or lets the peer wait for the first key that is not there.
void StoreService::wait(TcpPeer& peer, std::vector<std::string> keys) {
  peer.keys = std::move(keys);
  for (const std::string& key : peer.keys) {
    if (values_.find(key) == nullptr) {
      peer.waits = true;
      waiting_[key].push_back(&peer);
      return;
    }
  }
  peer.waits = false;
  reply(peer);
}

void StoreService::reply(TcpPeer& peer) {
  wire::Writer done(static_cast<uint8_t>(Answer::Done));
  if (peer.wants_values) {
    size_t bytes = 0;
    for (const std::string& key : peer.keys) {
      bytes += values_.find(key)->size() + sizeof(uint32_t);
    }
    if (bytes + sizeof(int64_t) + 1 > wire::max_message_bytes) {
      peer.out += wire::Writer(static_cast<uint8_t>(Answer::Wrong))
                      .string("multi_get: the values are too long for one message")
                      .take();
      peer.keys.clear();
      return;
    }
    if (peer.wants_count) {
      done.number(static_cast<int64_t>(peer.keys.size()));
    }
    for (const std::string& key : peer.keys) {
      done.string(*values_.find(key));
    }
  }
  peer.out += done.take();
  peer.keys.clear();
}

void StoreService::wake_waiting(const std::string& key, std::vector<TcpPeer*>& touched) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end() || values_.find(key) == nullptr) {
    return;
  }
  const std::vector<TcpPeer*> peers = std::move(found->second);
  waiting_.erase(found);
  for (TcpPeer* const peer : peers) {
    wait(*peer, std::move(peer->keys));
    touched.push_back(peer);
  }
}

void StoreService::forget(TcpPeer& peer) {
  if (!peer.waits) {
    return;
  }
  for (const std::string& key : peer.keys) {
    const auto found = waiting_.find(key);
    if (found == waiting_.end()) {
      continue;
    }
    std::erase(found->second, &peer);
    if (found->second.empty()) {
      waiting_.erase(found);
    }
  }
  peer.waits = false;
  peer.keys.clear();
}

// ---- sockets ----

struct TcpServer::Connection : TcpPeer {
  int fd = -1;
  bool wants_write = false;
};

namespace {

std::string error_text() { return std::strerror(errno); }

// A socket that listens at one address of a host; -1 and errno where that fails.
int listen_at(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return -1;
  }
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, 4096) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int listen_on(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const int status = getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  RL_CHECK_AS(NetworkError, status == 0, "The hostname of the server cannot be resolved: ", host,
              ": ", gai_strerror(status));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  bool elsewhere = true;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int fd = listen_at(*a);
    if (fd >= 0) {
      return fd;
    }
    elsewhere = elsewhere && errno == EADDRNOTAVAIL;
  }
  if (elsewhere) {
    // The host's name belongs to no interface here (an address that a router translates): all.
    hints.ai_flags |= AI_PASSIVE;
    addrinfo* any = nullptr;
    if (getaddrinfo(nullptr, service.c_str(), &hints, &any) == 0) {
      const std::unique_ptr<addrinfo, void (*)(addrinfo*)> any_owner(any, freeaddrinfo);
      for (const addrinfo* a = any; a != nullptr; a = a->ai_next) {
        const int fd = listen_at(*a);
        if (fd >= 0) {
          return fd;
        }
      }
    }
  }
  throw NetworkError(str("The server socket has failed to listen on ", host, ":", port, ": ",
                         error_text(), errno == EADDRINUSE ? " (EADDRINUSE)" : ""));
}

}  // namespace

TcpServer::TcpServer(const std::string& host, uint16_t port, int listen_fd) {
  listen_ = listen_fd >= 0 ? listen_fd : listen_on(host, port);
  fcntl(listen_, F_SETFL, fcntl(listen_, F_GETFL) | O_NONBLOCK);
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(listen_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const std::string error = error_text();
    close(listen_);
    throw NetworkError(str("The server socket is none: ", error));
  }
  port_ = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  process_ = getpid();
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  for (const int fd : {listen_, stop_}) {
    event.data.fd = fd;
    RL_CHECK_AS(NetworkError, epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event) == 0,
                "The server socket cannot be watched: ", error_text());
  }
  // Signals are for the threads that Python knows.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TcpServer::~TcpServer() {
  if (getpid() != process_) {
    thread_.detach();  // a fork has no threads
  } else {
    const uint64_t one = 1;
    (void)!write(stop_, &one, sizeof one);
    thread_.join();
  }
  for (const auto& entry : connections_) {
    close(entry.first);
  }
  for (const int fd : {listen_, stop_, poll_}) {
    close(fd);
  }
}

void TcpServer::serve() {
  epoll_event events[64];
  while (true) {
    const int count = epoll_wait(poll_, events, 64, -1);
    for (int i = 0; i < count; i++) {
      const int fd = events[i].data.fd;
      if (fd == stop_) {
        return;
      }
      if (fd == listen_) {
        accept_all();
        continue;
      }
      const auto found = connections_.find(fd);
      if (found == connections_.end()) {
        continue;
      }
      Connection& c = *found->second;
      try {
        if ((events[i].events & EPOLLOUT) != 0 && !write_some(c)) {
          drop(fd);
          continue;
        }
        if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !read_some(c)) {
          drop(fd);
        }
      } catch (const std::exception&) {
        // Out of memory for one client is no reason to leave the others alone.
        drop(fd);
      }
    }
  }
}

void TcpServer::accept_all() {
  while (true) {
    const int fd = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE) {
        std::this_thread::sleep_for(Milliseconds(10));
      }
      return;
    }
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event) != 0) {
      close(fd);
      continue;
    }
    auto connection = std::make_unique<Connection>();
    connection->fd = fd;
    connections_[fd] = std::move(connection);
  }
}

// False where the connection has ended or makes no sense.
bool TcpServer::read_some(Connection& c) {
  char buffer[1 << 16];
  const ssize_t n = recv(c.fd, buffer, sizeof buffer, 0);
  if (n < 0) {
    return errno == EAGAIN || errno == EINTR;
  }
  if (n == 0) {
    return false;
  }
  c.in.append(buffer, static_cast<size_t>(n));
  std::vector<TcpPeer*> touched;
  service_.on_input(c, touched);
  std::vector<int> broken;
  for (TcpPeer* const peer : touched) {
    Connection& other = static_cast<Connection&>(*peer);
    if (&other != &c && !other.wants_write && !other.out.empty() && !write_some(other)) {
      broken.push_back(other.fd);
    }
  }
  for (const int fd : broken) {
    drop(fd);
  }
  return !c.broken && write_some(c);
}

bool TcpServer::write_some(Connection& c) {
  std::string& out = c.out;
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = send(c.fd, out.data() + done, out.size() - done, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      if (errno != EAGAIN) {
        return false;
      }
      break;
    }
    done += static_cast<size_t>(n);
  }
  out.erase(0, done);
  if (c.wants_write == out.empty()) {
    c.wants_write = !out.empty();
    epoll_event event{};
    // A client that does not read its answers is not listened to meanwhile.
    event.events = c.wants_write ? EPOLLOUT : EPOLLIN;
    event.data.fd = c.fd;
    epoll_ctl(poll_, EPOLL_CTL_MOD, c.fd, &event);
  }
  return true;
}

void TcpServer::drop(int fd) {
  const auto found = connections_.find(fd);
  service_.on_close(*found->second);
  connections_.erase(found);
  close(fd);
}

}  // namespace rushlight::distributed
