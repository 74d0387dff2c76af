// One network and the requests that wait for it: some at a time are answered, a token of each in
// turn. Their tokens are multiplied together, so that weights are read once for all of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rushlight/language.h>

// Pieces of an answer on their way from the engine to who asked.
class Pieces {
 public:
  void put(std::string piece) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pieces_.push_back(std::move(piece));
    changed_.notify_one();
  }
  // With an error, or with none where all has been said.
  void end(std::string error = {}) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    error_ = std::move(error);
    changed_.notify_one();
  }
  // The next piece; false at the end. Errors of the network are raised here.
  bool take(std::string& piece) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !pieces_.empty(); });
    if (pieces_.empty()) {
      if (!error_.empty()) {
        throw std::runtime_error(error_);
      }
      return false;
    }
    piece = std::move(pieces_.front());
    pieces_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> pieces_;
  bool ended_ = false;
  std::string error_;
};

// A request: its prompt, how the answer is made, and where pieces of it come out.
struct Job {
  std::vector<int64_t> prompt;
  rushlight::language::Sampler sampler;
  int64_t max_tokens = 0;
  std::vector<std::string> stop;
  Pieces pieces;
  std::atomic<bool> cancelled{false};
  std::atomic<int64_t> made{0};
  std::string reason = "length";  // why it ended; set before the last piece
};

// The text of tokens, held back where a character is not whole, and where it may be the beginning
// of what ends an answer.
class Text {
 public:
  explicit Text(std::vector<std::string> stop = {}) : stop_(std::move(stop)) {}
  bool ended() const { return ended_; }

  // What can be said now.
  std::string add(const std::string& bytes, bool last = false) {
    bytes_ += bytes;
    held_ += whole_characters(last);
    size_t end = held_.npos;
    for (const std::string& s : stop_) {
      end = std::min(end, held_.find(s));
    }
    if (end != held_.npos) {
      ended_ = true;
      return std::exchange(held_, {}).substr(0, end);
    }
    size_t keep = 0;
    for (const std::string& s : stop_) {
      keep = std::max(keep, last ? 0 : begun(s));
    }
    std::string said = held_.substr(0, held_.size() - keep);
    held_.erase(0, said.size());
    return said;
  }

 private:
  // How many bytes at the end of the text may be the beginning of `stop`.
  size_t begun(const std::string& stop) const {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > 0; n--) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) {
        return n;
      }
    }
    return 0;
  }

  // Whether a byte may stand at a place behind the first one of a character.
  static bool follows(unsigned char lead, unsigned char byte, size_t place) {
    const unsigned low = place > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = place > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return byte >= low && byte <= high;
  }

  // Takes characters off the bytes; a sign of replacement stands for what is none.
  std::string whole_characters(bool last) {
    std::string found;
    size_t at = 0;
    while (at < bytes_.size()) {
      const auto lead = static_cast<unsigned char>(bytes_[at]);
      const size_t n = lead < 0x80   ? 1
                       : lead < 0xc2 ? 0
                       : lead < 0xe0 ? 2
                       : lead < 0xf0 ? 3
                       : lead < 0xf5 ? 4
                                     : 0;
      size_t there = 1;
      while (there < n && at + there < bytes_.size() &&
             follows(lead, static_cast<unsigned char>(bytes_[at + there]), there)) {
        there++;
      }
      if (n > 0 && there < n && at + there == bytes_.size() && !last) {
        break;  // the rest may come
      }
      found += there == n ? bytes_.substr(at, n) : "\xef\xbf\xbd";
      at += there;
    }
    bytes_.erase(0, at);
    return found;
  }

  std::vector<std::string> stop_;
  std::string bytes_;
  std::string held_;
  bool ended_ = false;
};

class Engine {
 public:
  struct Busy : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  Engine(std::string path, const rushlight::language::LlamaOptions& options, size_t waiting)
      : path_(std::move(path)),
        options_(options),
        waiting_(waiting),
        seats_(static_cast<size_t>(options.sequences)),
        thread_([this] { run(); }) {}
  ~Engine() { stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Ends the answers that are being made and refuses those that wait.
  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) {
      thread_.join();
    }
    for (const auto& job : jobs_) {
      job->pieces.end("the server is shutting down");
    }
    jobs_.clear();
  }

  // Puts a request at the end of the queue; Busy where that is full, or there is no network.
  void submit(const std::shared_ptr<Job>& job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_well()) {
      throw Busy(words());
    }
    if (jobs_.size() >= waiting_) {
      throw Busy("too many requests are waiting");
    }
    jobs_.push_back(job);
    changed_.notify_all();
  }

  // Whether it answers, and what it does, in words.
  std::pair<bool, std::string> state() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {is_well(), words()};
  }
  std::string error() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return error_;
  }
  // Waits until the file is loaded, or could not be.
  void wait() const {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return ready_ || stopped_; });
  }

  // Only of an engine that answers.
  const rushlight::language::Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t max_len() const { return net_->max_len(); }
  const std::string& chat_template() const { return chat_template_; }

 private:
  // A text of the network: what its caches hold, and the request that it is made for.
  struct Seat {
    std::vector<int64_t> history;
    size_t read = 0;  // tokens of it that the caches hold
    std::shared_ptr<Job> job;
    Text text;

    size_t left() const { return history.size() - read; }
    // How many tokens of a prompt need not be read again; the last one always is.
    size_t in_common(const std::vector<int64_t>& prompt) const {
      const size_t most = std::min(read, prompt.size() - 1);
      size_t n = 0;
      while (n < most && prompt[n] == history[n]) {
        n++;
      }
      return n;
    }
  };

  bool is_well() const { return ready_ && error_.empty() && !stopped_; }
  std::string words() const {
    if (stopped_) {
      return "the server is shutting down";
    }
    if (!error_.empty()) {
      return "the file could not be loaded: " + error_;
    }
    return ready_ ? "ok"
                  : "loading, " + std::to_string(done_) + " of " +
                        (of_ > 0 ? std::to_string(of_) : "?") + " blocks";
  }
  int64_t number(const Seat& seat) const { return &seat - seats_.data(); }

  void load() {
    auto options = options_;
    options.progress = [this](int64_t done, int64_t of) {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = done;
      of_ = of;
      if (stopped_) {
        throw Busy("the server is shutting down");
      }
    };
    const auto file = rushlight::gguf::load(path_);
    const auto found = file.metadata.find("tokenizer.chat_template");
    if (found != file.metadata.end() && std::holds_alternative<std::string>(found->second)) {
      chat_template_ = std::get<std::string>(found->second);
    }
    tokenizer_ = std::make_unique<rushlight::language::Tokenizer>(file.metadata);
    net_ = std::make_unique<rushlight::language::Llama>(
        rushlight::language::Llama::load(path_, options));
  }

  void run() {
    std::string failure;
    try {
      load();
    } catch (const std::exception& e) {
      failure = e.what();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      error_ = failure;
      ready_ = true;
      changed_.notify_all();
    }
    while (failure.empty() && admit()) {
      std::vector<Seat*> steps;
      Seat* reading = nullptr;
      for (Seat& seat : seats_) {
        if (seat.job && seat.job->cancelled) {
          end(seat, "stop");
        }
        if (seat.job && seat.left() == 1) {
          steps.push_back(&seat);
        } else if (seat.job && reading == nullptr) {
          reading = &seat;
        }
      }
      if (reading != nullptr) {
        read(*reading);
      }
      if (!steps.empty()) {
        step(steps);
      }
    }
    for (Seat& seat : seats_) {
      if (seat.job) {
        end(seat, "stop");
      }
    }
  }

  // Seats for those who wait; where all are free, it waits itself. False where it is to end.
  bool admit() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped_) {
      Seat* best = nullptr;
      bool idle = true;
      for (Seat& seat : seats_) {
        idle = idle && !seat.job;
        const bool fits = !seat.job && !jobs_.empty();
        if (fits && (best == nullptr || seat.in_common(jobs_.front()->prompt) >
                                            best->in_common(jobs_.front()->prompt))) {
          best = &seat;
        }
      }
      if (best == nullptr) {
        if (!idle) {
          return true;
        }
        changed_.wait(lock);
        continue;
      }
      best->job = jobs_.front();
      jobs_.pop_front();
      best->read = best->in_common(best->job->prompt);
      best->history = best->job->prompt;
      best->text = Text(best->job->stop);
      net_->truncate(static_cast<int64_t>(best->read), number(*best));
    }
    return false;
  }

  // A part of a prompt, so that the others do not wait for the whole; its last token is left.
  void read(Seat& seat) {
    const size_t n = std::min<size_t>(seat.left() - 1, 512);
    const auto from = seat.history.begin() + static_cast<int64_t>(seat.read);
    try {
      net_->read({from, from + static_cast<int64_t>(n)}, number(seat));
      seat.read += n;
    } catch (const std::exception& e) {  // of this request alone
      fail(seat, e.what());
    }
  }

  // One token more for each, all at once.
  void step(const std::vector<Seat*>& seats) {
    std::vector<int64_t> tokens;
    std::vector<int64_t> which;
    for (const Seat* seat : seats) {
      tokens.push_back(seat->history.back());
      which.push_back(number(*seat));
    }
    rushlight::Tensor logits;
    try {
      logits = net_->step(tokens, which);
    } catch (const std::exception& e) {
      for (Seat* seat : seats) {
        fail(*seat, e.what());
      }
      return;
    }
    for (size_t i = 0; i < seats.size(); i++) {
      seats[i]->read++;
      try {
        say(*seats[i], logits.select(0, static_cast<int64_t>(i)));
      } catch (const std::exception& e) {  // of its sampler
        fail(*seats[i], e.what());
      }
    }
  }

  void say(Seat& seat, const rushlight::Tensor& logits) {
    Job& job = *seat.job;
    const int64_t token = job.sampler(logits, seat.history);
    if (tokenizer_->ends().count(token) != 0) {
      end(seat, "stop");
      return;
    }
    seat.history.push_back(token);
    job.made++;
    const std::string piece = seat.text.add(tokenizer_->piece(token));
    if (!piece.empty()) {
      job.pieces.put(piece);
    }
    if (seat.text.ended()) {
      end(seat, "stop");
    } else if (job.made == job.max_tokens ||
               static_cast<int64_t>(seat.history.size()) > net_->max_len()) {
      end(seat, "length");
    }
  }

  void end(Seat& seat, const char* reason) {
    const std::shared_ptr<Job> job = std::move(seat.job);
    seat.job = nullptr;
    job->reason = reason;
    const std::string rest = seat.text.ended() ? std::string() : seat.text.add({}, true);
    if (!rest.empty()) {
      job->pieces.put(rest);
    }
    job->pieces.end();
  }

  void fail(Seat& seat, const char* error) {
    seat.job->pieces.end(error);
    seat = Seat();
  }

  const std::string path_;
  const rushlight::language::LlamaOptions options_;
  const size_t waiting_;
  std::unique_ptr<rushlight::language::Tokenizer> tokenizer_;
  std::unique_ptr<rushlight::language::Llama> net_;
  std::string chat_template_;

  mutable std::mutex mutex_;  // of what follows
  mutable std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool ready_ = false;
  bool stopped_ = false;
  std::string error_;
  int64_t done_ = 0;  // blocks that are loaded
  int64_t of_ = 0;

  std::vector<Seat> seats_;  // of the thread
  std::thread thread_;       // the last member: it uses the others
};
