// Several ways to do one job, best first: the first that accepts runs, each refusal gives its
// reason, and RUSHLIGHT_VERBOSE=1 prints both. A candidate is a function `const char* f(const
// Problem&)` that returns null after doing the job, or says in a few words why it will not, before
// it has written anything. The last of a list accepts all.
#pragma once

#include <string>

#include <rushlight/error.h>

#include "core/verbose.h"

namespace rushlight::cpu {

template <class Problem>
struct Candidate {
  const char* name;
  const char* (*run)(const Problem& problem);
};

// `Problem` has `std::string describe() const`: "matmul float32 64x64x64".
template <class Problem, size_t N>
void run_first(const Candidate<Problem> (&candidates)[N], const Problem& problem) {
  if (RL_LIKELY(!verbose())) {
    for (const Candidate<Problem>& candidate : candidates) {
      if (candidate.run(problem) == nullptr) {
        return;
      }
    }
  } else {
    std::string line = problem.describe() + ":";
    for (const Candidate<Problem>& candidate : candidates) {
      const char* refusal = candidate.run(problem);
      line +=
          str(" ", candidate.name, refusal == nullptr ? " ran" : str(" refused (", refusal, "),"));
      if (refusal == nullptr) {
        verbose_line(line);
        return;
      }
    }
  }
  throw NotImplementedError(str(problem.describe(), ": no implementation accepts this"));
}

}  // namespace rushlight::cpu
