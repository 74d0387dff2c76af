// JSON.
#include <rushlight/json.h>

#include <charconv>

namespace rushlight::serialize {

// ---- reading from the beginning to the end ----

void JsonReader::fail(const char* why) const {
  throw Error(str(what_, ": ", why, " at byte ", at_));
}

void JsonReader::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    at_++;
  }
}

char JsonReader::peek() {
  skip_space();
  return at_ < text_.size() ? text_[at_] : '\0';
}

char JsonReader::next() {
  if (at_ == text_.size()) {
    fail("the text ends early");
  }
  return text_[at_++];
}

bool JsonReader::take(char c) {
  if (peek() != c || at_ == text_.size()) {
    return false;
  }
  at_++;
  return true;
}

void JsonReader::expect(char c) {
  if (!take(c)) {
    fail("a character is missing or wrong");
  }
}

void JsonReader::end() {
  skip_space();
  if (at_ != text_.size()) {
    fail("something follows the value");
  }
}

void JsonReader::word(std::string_view wanted) {
  if (text_.substr(at_, wanted.size()) != wanted) {
    fail("an unknown word");
  }
  at_ += wanted.size();
}

bool JsonReader::boolean() {
  const bool yes = peek() == 't';
  word(yes ? "true" : "false");
  return yes;
}

std::string_view JsonReader::number_text() {
  skip_space();
  const size_t begin = at_;
  while (at_ < text_.size() &&
         (std::string_view("+-.eE").find(text_[at_]) != std::string_view::npos ||
          (text_[at_] >= '0' && text_[at_] <= '9'))) {
    at_++;
  }
  if (at_ == begin || text_[begin] == '+') {
    fail("expected a number");
  }
  return text_.substr(begin, at_ - begin);
}

int64_t JsonReader::integer() {
  const std::string_view text = number_text();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    fail("a number is too large");
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    fail("expected an integer");
  }
  return value;
}

int64_t JsonReader::natural() {
  const int64_t value = integer();
  if (value < 0) {
    fail("expected a number that is not negative");
  }
  return value;
}

double JsonReader::number() {
  const std::string_view text = number_text();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    fail("a number is out of range");
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    fail("expected a number");
  }
  return value;
}

std::string JsonReader::string() {
  expect('"');
  std::string out;
  while (true) {
    const char c = next();
    if (c == '"') {
      return out;
    }
    if (static_cast<unsigned char>(c) < 0x20) {
      fail("a control character in a string");
    }
    if (c == '\\') {
      escape(out);
    } else {
      out += c;
    }
  }
}

void JsonReader::skip(int depth) {
  switch (peek()) {
    case '{':
    case '[':
      if (depth == 0) {
        fail("containers lie too deep in each other");
      }
      if (peek() == '[') {
        array([&] { skip(depth - 1); });
      } else {
        object([&](const std::string&) { skip(depth - 1); });
      }
      break;
    case '"':
      string();
      break;
    case 't':
    case 'f':
      boolean();
      break;
    case 'n':
      word("null");
      break;
    default:
      number();
  }
}

uint32_t JsonReader::hex4() {
  uint32_t value = 0;
  for (int i = 0; i < 4; i++) {
    const char c = next();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) {
      fail("a damaged escape in a string");
    }
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}
void JsonReader::escape(std::string& out) {
  const char c = next();
  constexpr std::string_view from = "\"\\/bfnrt";
  constexpr std::string_view to = "\"\\/\b\f\n\r\t";
  const size_t i = from.find(c);
  if (i != std::string_view::npos) {
    out += to[i];
    return;
  }
  if (c != 'u') {
    fail("an unknown escape in a string");
  }
  uint32_t code = hex4();
  if (code >= 0xd800 && code < 0xdc00) {  // the first of a pair
    if (next() != '\\' || next() != 'u') {
      fail("half of a character in a string");
    }
    const uint32_t low = hex4();
    if (low < 0xdc00 || low > 0xdfff) {
      fail("half of a character in a string");
    }
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    fail("half of a character in a string");
  }
  const auto put = [&](uint32_t lead, int more) {
    out += static_cast<char>(lead | code >> (6 * more));
    while (more-- > 0) {
      out += static_cast<char>(0x80 | (code >> (6 * more) & 0x3f));
    }
  };
  code < 0x80      ? put(0, 0)
  : code < 0x800   ? put(0xc0, 1)
  : code < 0x10000 ? put(0xe0, 2)
                   : put(0xf0, 3);
}

// ---- views ----

Json::Json(std::string_view text, const char* what) : text_(text), what_(what) {
  JsonReader r = reader();
  r.skip();
  r.end();
}

std::optional<Json> Json::find(std::string_view key) const {
  std::optional<Json> found;
  members([&](const std::string& name, const Json& value) {
    if (name == key && !found && !value.is_null()) {
      found = value;
    }
  });
  return found;
}

Json Json::at(std::string_view key) const {
  const std::optional<Json> found = find(key);
  if (!found) {
    throw Error(str(what_, ": '", key, "' is missing in ", text_.substr(0, 80)));
  }
  return *found;
}

std::pair<std::string, Json> Json::only() const {
  std::optional<std::pair<std::string, Json>> found;
  members([&](const std::string& name, const Json& value) {
    if (found) {
      throw Error(str(what_, ": one kind of value is wanted, and there are several in ",
                      text_.substr(0, 80)));
    }
    found.emplace(name, value);
  });
  if (!found) {
    throw Error(str(what_, ": an empty object where a value is wanted"));
  }
  return *found;
}

}  // namespace rushlight::serialize
