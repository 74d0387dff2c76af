// What a training shows while it runs: a bar with the loss and the time that is left, and in the
// end the learning curve, drawn with characters.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

class Progress {
 public:
  explicit Progress(int64_t steps) : steps_(steps), is_terminal_(isatty(fileno(stdout)) != 0) {}

  // After each step. A terminal shows a bar that grows; a file gets a line for each tenth.
  void step(double loss) {
    losses_.push_back(loss);
    const auto done = static_cast<int64_t>(losses_.size());
    const bool is_tenth = done * 10 / steps_ != (done - 1) * 10 / steps_;
    const Clock::time_point now = Clock::now();
    if (is_terminal_ && (now > next_ || done == steps_)) {
      next_ = now + std::chrono::milliseconds(100);
      std::printf("\r%s", line(done, now).c_str());
      std::fflush(stdout);
    } else if (!is_terminal_ && is_tenth) {
      std::printf("%s\n", line(done, now).c_str());
    }
    if (is_terminal_ && done == steps_) {
      std::printf("\n");
    }
  }
  const std::vector<double>& losses() const { return losses_; }

  // The losses over the steps, each column the mean of its part of them.
  std::string curve(size_t width = 60, size_t height = 10) const {
    if (losses_.empty()) {
      return "";
    }
    width = std::min(width, losses_.size());
    std::vector<double> means(width);
    for (size_t i = 0; i < width; i++) {
      const size_t from = i * losses_.size() / width;
      const size_t to = (i + 1) * losses_.size() / width;
      for (size_t k = from; k < to; k++) {
        means[i] += losses_[k] / static_cast<double>(to - from);
      }
    }
    const auto [low, high] = std::minmax_element(means.begin(), means.end());
    const double range = std::max(*high - *low, 1e-12);
    std::string out;
    for (size_t row = 0; row < height; row++) {
      const double level =
          *high - range * static_cast<double>(row) / static_cast<double>(height - 1);
      char label[16];
      std::snprintf(label, sizeof label, "%9.4f", level);
      out += row == 0 || row + 1 == height ? label : std::string(9, ' ');
      out += " |";
      for (const double mean : means) {
        const double place = std::round((*high - mean) / range * static_cast<double>(height - 1));
        out += static_cast<size_t>(place) == row ? '*' : ' ';
      }
      out += '\n';
    }
    return out;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(int64_t done, Clock::time_point now) const {
    constexpr int64_t width = 24;
    const int64_t filled = done * width / steps_;
    const std::string bar(static_cast<size_t>(filled), '=');
    const std::string rest(static_cast<size_t>(width - filled), ' ');
    const double seconds = std::chrono::duration<double>(now - began_).count();
    char text[160];
    std::snprintf(text, sizeof text, "[%s%s] %3d %%  loss %.4f  %.0f s left ", bar.c_str(),
                  rest.c_str(), static_cast<int>(done * 100 / steps_), losses_.back(),
                  seconds / static_cast<double>(done) * static_cast<double>(steps_ - done));
    return text;
  }

  int64_t steps_;
  bool is_terminal_;
  std::vector<double> losses_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point next_ = began_;
};
