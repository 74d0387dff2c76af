// What the C++ tests need, and no more: RL_TEST(name) { ... } defines a test, CHECK and
// CHECK_THROWS test a fact, RL_TEST_MAIN() runs all tests of the file (or those whose names contain
// the first argument). A failed check is printed and counted; an exception ends its test.
#pragma once

#include <cstdio>
#include <cstring>
#include <exception>

namespace rushlight::testing {

struct Test {
  const char* name;
  void (*run)();
  Test* next;
};
inline Test* tests = nullptr;
inline int failures = 0;

struct Register {
  Test test;
  Register(const char* name, void (*run)()) : test{name, run, nullptr} {
    Test** end = &tests;
    while (*end != nullptr) {
      end = &(*end)->next;
    }
    *end = &test;
  }
};

inline void report(bool good, const char* text, const char* file, int line) {
  if (!good) {
    failures++;
    std::printf("%s:%d: failed: %s\n", file, line, text);
  }
}

inline int run_all(int argc, char** argv) {
  for (Test* t = tests; t != nullptr; t = t->next) {
    if (argc > 1 && std::strstr(t->name, argv[1]) == nullptr) {
      continue;
    }
    const int before = failures;
    try {
      t->run();
    } catch (const std::exception& e) {
      failures++;
      std::printf("%s: exception: %s\n", t->name, e.what());
    }
    std::printf("%s %s\n", failures == before ? "ok  " : "FAIL", t->name);
  }
  std::printf("%d failed checks\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace rushlight::testing

#define RL_TEST(name)                                                        \
  static void test_##name();                                                 \
  static ::rushlight::testing::Register register_##name(#name, test_##name); \
  static void test_##name()
#undef CHECK  // that of <rushlight/logging.h>
#define CHECK(condition) \
  ::rushlight::testing::report(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
// `expression` throws a Type whose text contains `phrase`.
#define CHECK_THROWS(Type, phrase, expression)                                               \
  do {                                                                                       \
    bool thrown = false;                                                                     \
    try {                                                                                    \
      (void)(expression);                                                                    \
    } catch (const Type& e) {                                                                \
      thrown = std::strstr(e.what(), phrase) != nullptr;                                     \
    }                                                                                        \
    ::rushlight::testing::report(thrown, #expression " throws " #Type ": " phrase, __FILE__, \
                                 __LINE__);                                                  \
  } while (false)
#define RL_TEST_MAIN() \
  int main(int argc, char** argv) { return ::rushlight::testing::run_all(argc, argv); }
