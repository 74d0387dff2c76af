// JSON as files of tensors and programs have it: read once from the beginning to the end
// (JsonReader), or, where parts are wanted in another order, as views of a text (Json). It knows no
// tensors, so that fuzzers of what is written in it build alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <rushlight/error.h>

namespace rushlight::serialize {

class RL_API JsonReader {
 public:
  // `text`, which must outlive the reader, is of `what`: errors begin with that.
  JsonReader(std::string_view text, const char* what) : text_(text), what_(what) {}

  // f(key) for each key of an object; it reads the value.
  template <class F>
  void object(const F& f) {
    expect('{');
    if (take('}')) {
      return;
    }
    do {
      const std::string key = string();
      expect(':');
      f(key);
    } while (take(','));
    expect('}');
  }
  // f() for each item; it reads it.
  template <class F>
  void array(const F& f) {
    expect('[');
    if (take(']')) {
      return;
    }
    do {
      f();
    } while (take(','));
    expect(']');
  }
  int64_t natural();  // an integer from 0 on
  int64_t integer();
  double number();
  bool boolean();
  std::string string();
  // Reads a value of any kind; containers in more than `depth` others are refused.
  void skip(int depth = 200);
  // The next character that is no space; 0 at the end.
  char peek();
  size_t position() const { return at_; }
  std::string_view text() const { return text_; }
  const char* what() const { return what_; }
  void end();
  [[noreturn]] void fail(const char* why) const;

 private:
  void skip_space();
  char next();
  bool take(char c);
  void expect(char c);
  void word(std::string_view wanted);
  std::string_view number_text();
  uint32_t hex4();
  void escape(std::string& out);

  std::string_view text_;
  const char* what_;
  size_t at_ = 0;
};

// A value in a JSON text; nothing is copied before it is asked for. RuntimeError wherever a value
// is of another kind than it is asked for.
class RL_API Json {
 public:
  // Checks the text whole.
  Json(std::string_view text, const char* what);

  bool is_null() const { return first() == 'n'; }
  bool is_object() const { return first() == '{'; }
  bool is_array() const { return first() == '['; }
  bool is_string() const { return first() == '"'; }
  bool is_boolean() const { return first() == 't' || first() == 'f'; }
  bool boolean() const { return reader().boolean(); }
  int64_t integer() const { return reader().integer(); }
  double number() const { return reader().number(); }
  std::string string() const { return reader().string(); }
  std::string_view text() const { return text_; }

  // f(value) for each item of an array.
  template <class F>
  void items(const F& f) const {
    JsonReader r = reader();
    r.array([&] { f(value_at(r)); });
  }
  // f(key, value) for each member of an object.
  template <class F>
  void members(const F& f) const {
    JsonReader r = reader();
    r.object([&](const std::string& key) { f(key, value_at(r)); });
  }
  // Nothing where there is no such key, or where it has null. The first of equal keys.
  std::optional<Json> find(std::string_view key) const;
  Json at(std::string_view key) const;
  // The key and the value of an object that has one.
  std::pair<std::string, Json> only() const;

 private:
  struct Checked {};
  Json(std::string_view text, const char* what, Checked) : text_(text), what_(what) {}
  char first() const { return reader().peek(); }
  JsonReader reader() const { return {text_, what_}; }
  static Json value_at(JsonReader& r) {
    r.peek();  // to its first character
    const size_t begin = r.position();
    r.skip();
    return {r.text().substr(begin, r.position() - begin), r.what(), Checked()};
  }
  std::string_view text_;
  const char* what_;
};

}  // namespace rushlight::serialize
