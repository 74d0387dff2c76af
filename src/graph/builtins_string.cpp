// Functions of strings, which are counted in bytes; only ASCII letters have cases.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "graph/builtins.h"

namespace rushlight::graph {

namespace {

using Text = std::string;
constexpr size_t npos = Text::npos;
constexpr size_t most_text = size_t{1} << 31;  // bytes that a string is filled up to

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }
bool is_alpha(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_print(char c) { return std::isprint(static_cast<unsigned char>(c)) != 0; }
bool is_alnum(char c) { return is_alpha(c) || is_digit(c); }
char to_upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }
char to_lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

template <char (*change)(char)>
Text change_each(Text s) {
  std::transform(s.begin(), s.end(), s.begin(), change);
  return s;
}
char swap_case(char c) { return is_upper(c) ? to_lower(c) : to_upper(c); }
Text title(Text s) {
  bool begins = true;
  for (char& c : s) {
    c = begins ? to_upper(c) : to_lower(c);
    begins = !is_alpha(c);
  }
  return s;
}
Text capitalize(Text s) {
  s = change_each<to_lower>(std::move(s));
  if (!s.empty()) {
    s[0] = to_upper(s[0]);
  }
  return s;
}

template <bool (*holds)(char)>
bool all_are(Text s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), holds);
}
// Of its letters, of which it must have one.
template <bool (*holds)(char)>
bool all_letters_are(Text s) {
  return std::any_of(s.begin(), s.end(), is_alpha) &&
         std::all_of(s.begin(), s.end(), [](char c) { return !is_alpha(c) || holds(c); });
}
bool is_printable(Text s) { return std::all_of(s.begin(), s.end(), is_print); }
bool is_identifier(Text s) {
  return !s.empty() && !is_digit(s[0]) &&
         std::all_of(s.begin(), s.end(), [](char c) { return is_alnum(c) || c == '_'; });
}
bool is_title(Text s) { return std::any_of(s.begin(), s.end(), is_alpha) && title(s) == s; }

// ---- where ----

// The part from start to end, where -1 is the end itself.
struct Part {
  size_t begin;
  size_t end;
};
Part part_of(const Text& s, int64_t start, int64_t end) {
  const auto n = static_cast<int64_t>(s.size());
  const int64_t low = std::clamp<int64_t>(start < 0 ? start + n : start, 0, n + 1);
  const int64_t high = std::clamp<int64_t>(end < 0 ? end + n + 1 : end, 0, n);
  return {static_cast<size_t>(low), static_cast<size_t>(high)};
}
int64_t find(Text s, Text what, int64_t start, int64_t end) {
  const Part part = part_of(s, start, end);
  const size_t at = part.begin > s.size() ? npos : s.find(what, part.begin);
  return at == npos || at + what.size() > part.end ? -1 : static_cast<int64_t>(at);
}
int64_t rfind(Text s, Text what, int64_t start, int64_t end) {
  const Part part = part_of(s, start, end);
  if (part.end < part.begin + what.size()) {
    return -1;
  }
  const size_t at = s.rfind(what, part.end - what.size());
  return at == npos || at < part.begin ? -1 : static_cast<int64_t>(at);
}
template <int64_t (*find)(Text, Text, int64_t, int64_t)>
int64_t index(Text s, Text what, int64_t start, int64_t end) {
  const int64_t at = find(std::move(s), std::move(what), start, end);
  RL_CHECK_VALUE(at >= 0, "ValueError: substring not found");
  return at;
}
int64_t count(Text s, Text what, int64_t start, int64_t end) {
  const Part part = part_of(s, start, end);
  if (part.begin > part.end) {
    return 0;
  }
  if (what.empty()) {
    return static_cast<int64_t>(part.end - part.begin) + 1;
  }
  int64_t out = 0;
  for (size_t at = s.find(what, part.begin); at != npos && at + what.size() <= part.end;
       at = s.find(what, at + what.size())) {
    out++;
  }
  return out;
}
bool starts_with(Text s, Text what, int64_t start, int64_t end) {
  const Part part = part_of(s, start, end);
  return part.begin + what.size() <= part.end && s.compare(part.begin, what.size(), what) == 0;
}
bool ends_with(Text s, Text what, int64_t start, int64_t end) {
  const Part part = part_of(s, start, end);
  return part.begin + what.size() <= part.end &&
         s.compare(part.end - what.size(), what.size(), what) == 0;
}

// ---- pieces ----

using Pieces = std::vector<Text>;

Pieces split_at_spaces(const Text& s, int64_t most) {
  Pieces out;
  for (size_t at = 0; at < s.size();) {
    if (is_space(s[at])) {
      at++;
      continue;
    }
    size_t end = at;
    while (end < s.size() && (!is_space(s[end]) || static_cast<int64_t>(out.size()) == most)) {
      end++;
    }
    out.push_back(s.substr(at, end - at));
    at = end;
  }
  return out;
}
Pieces split_at(const Text& s, const Text& separator, int64_t most) {
  RL_CHECK_VALUE(!separator.empty(), "empty separator");
  Pieces out;
  size_t begin = 0;
  size_t at = 0;
  while ((most < 0 || static_cast<int64_t>(out.size()) < most) &&
         (at = s.find(separator, begin)) != npos) {
    out.push_back(s.substr(begin, at - begin));
    begin = at + separator.size();
  }
  out.push_back(s.substr(begin));
  return out;
}
Pieces split(Text s, std::optional<Text> separator, int64_t most) {
  return separator ? split_at(s, *separator, most) : split_at_spaces(s, most);
}
Pieces rsplit(Text s, Text separator, int64_t most) {
  std::reverse(s.begin(), s.end());
  std::reverse(separator.begin(), separator.end());
  Pieces out = split_at(s, separator, most);
  for (Text& piece : out) {
    std::reverse(piece.begin(), piece.end());
  }
  std::reverse(out.begin(), out.end());
  return out;
}
Pieces splitlines(Text s, bool keepends) {
  Pieces out;
  for (size_t at = 0; at < s.size();) {
    const size_t end = std::min(s.find_first_of("\n\r\v\f\x1c\x1d\x1e", at), s.size());
    size_t next = std::min(end + 1, s.size());
    if (end + 1 < s.size() && s[end] == '\r' && s[end + 1] == '\n') {
      next++;
    }
    out.push_back(s.substr(at, (keepends ? next : end) - at));
    at = next;
  }
  return out;
}
template <bool from_behind>
void partition(IValue* a, size_t, IValue* out) {
  const Text s = a[0].toStringRef();
  const Text separator = a[1].toStringRef();
  RL_CHECK_VALUE(!separator.empty(), "empty separator");
  const size_t at = from_behind ? s.rfind(separator) : s.find(separator);
  const bool is_found = at != npos;
  out[0] = is_found ? s.substr(0, at) : from_behind ? Text() : s;
  out[1] = is_found ? separator : Text();
  out[2] = is_found ? s.substr(at + separator.size()) : from_behind ? s : Text();
}
Text join(Text separator, Pieces pieces) {
  Text out;
  for (size_t i = 0; i < pieces.size(); i++) {
    out += (i == 0 ? "" : separator) + pieces[i];
  }
  return out;
}
Text replace(Text s, Text old, Text by, int64_t most) {
  Text out;
  int64_t done = 0;
  for (size_t at = 0; at <= s.size();) {
    const bool may = most < 0 || done < most;
    if (may && s.compare(at, old.size(), old) == 0) {
      out += by;
      done++;
      if (!old.empty()) {
        at += old.size();
        continue;
      }
    }
    if (at < s.size()) {
      out += s[at];
    }
    at++;
  }
  return out;
}

// ---- around ----

Text lstrip(Text s, Text chars) {
  const size_t begin = s.find_first_not_of(chars);
  return begin == npos ? Text() : s.substr(begin);
}
Text rstrip(Text s, Text chars) {
  const size_t last = s.find_last_not_of(chars);
  return last == npos ? Text() : s.substr(0, last + 1);
}
Text strip(Text s, Text chars) { return rstrip(lstrip(std::move(s), chars), chars); }

size_t padding_length(const Text& s, int64_t width, const Text& fill) {
  RL_CHECK_TYPE(fill.size() == 1, "the fill character must be exactly one character long");
  RL_CHECK(width < static_cast<int64_t>(most_text), "a string of ", width,
           " characters is too long");
  return width > static_cast<int64_t>(s.size()) ? static_cast<size_t>(width) - s.size() : 0;
}
Text ljust(Text s, int64_t width, Text fill) {
  return s + Text(padding_length(s, width, fill), fill[0]);
}
Text rjust(Text s, int64_t width, Text fill) {
  return Text(padding_length(s, width, fill), fill[0]) + s;
}
Text center(Text s, int64_t width, Text fill) {
  const size_t n = padding_length(s, width, fill);
  // As Python: the odd one stands behind, but before where the width is odd.
  const size_t before = n / 2 + (n & static_cast<size_t>(width) & 1);
  return Text(before, fill[0]) + s + Text(n - before, fill[0]);
}
Text zfill(Text s, int64_t width) { return rjust(std::move(s), width, "0"); }
Text expandtabs(Text s, int64_t size) {
  Text out;
  size_t column = 0;
  for (const char c : s) {
    if (c == '\t') {
      const size_t n =
          size > 0 ? static_cast<size_t>(size) - column % static_cast<size_t>(size) : 0;
      RL_CHECK(n < most_text, "a string with tabs of ", size, " characters is too long");
      out += Text(n, ' ');
      column += n;
    } else {
      out += c;
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return out;
}
Text slice(IValue* a) {
  const Text s = a[0].toStringRef();
  Text out;
  for (const size_t place : slice_places(a[1], a[2], a[3].toInt(), s.size())) {
    out += s[place];
  }
  return out;
}

// ---- numbers as text ----

Text digits_in_base(int64_t number, unsigned base, const char* prefix) {
  uint64_t rest = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  Text digits;
  do {
    digits += "0123456789abcdef"[rest % base];
    rest /= base;
  } while (rest != 0);
  std::reverse(digits.begin(), digits.end());
  return (number < 0 ? "-" : "") + Text(prefix) + digits;
}
int64_t ord(Text s) {
  RL_CHECK(s.size() == 1, "ord() expected a character, got a string of ", s.size());
  return static_cast<unsigned char>(s[0]);
}
Text chr(int64_t code) {
  RL_CHECK(code >= 0 && code < 256, "chr() arg not in range(256): ", code);
  return Text(1, static_cast<char>(code));
}

// ---- formats ----

void format(IValue* a, size_t n, IValue* out) {
  const Text form = a[0].toStringRef();
  Text made;
  size_t next = 1;
  for (size_t at = 0;;) {
    const size_t place = form.find("{}", at);
    made += form.substr(at, place == npos ? npos : place - at);
    if (place == npos) {
      break;
    }
    RL_CHECK(next < n, "Too few arguments for format string: ", form);
    made += text_of(a[next++]);
    at = place + 2;
  }
  out[0] = std::move(made);
}

Text format_value(char specifier, const IValue& value) {
  switch (specifier) {
    case 's':
      return text_of(value);
    case 'd':
    case 'i':
      return std::to_string(value.isDouble() ? static_cast<int64_t>(value.toDouble())
                                             : value.toScalar().as<int64_t>());
    case 'e':
    case 'E':
    case 'f':
    case 'F': {
      const char form[] = {'%', specifier, 0};
      char text[400];
      std::snprintf(text, sizeof text, form, value.toScalar().as<double>());
      return text;
    }
    case 'c':
      return value.isString() ? value.toStringRef() : chr(value.toInt());
    default:
      throw Error(str("The specifier %", specifier,
                      " is not supported in TorchScript; s, d, i, f, e ", "and c are"));
  }
}
void percent_format(IValue* a, size_t n, IValue* out) {
  const Text form = a[0].toStringRef();
  Text made;
  size_t next = 1;
  for (size_t at = 0; at < form.size(); at++) {
    if (form[at] != '%') {
      made += form[at];
      continue;
    }
    RL_CHECK(++at < form.size(), "the format string ends with a single %");
    if (form[at] == '%') {
      made += '%';
      continue;
    }
    RL_CHECK(next < n, "Too few arguments for format string");
    made += format_value(form[at], a[next++]);
  }
  RL_CHECK(next == n, "Too many arguments for format string");
  out[0] = std::move(made);
}

void print_to_stdout(const Text& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}
std::atomic<PrintLine> printer = print_to_stdout;

void print(IValue* a, size_t n, IValue*) {
  Text line;
  for (size_t i = 0; i < n; i++) {
    line += (i == 0 ? "" : " ") + text_of(a[i]);
  }
  line += '\n';
  printer.load()(line);
}

const BuiltinRow rows[] = {
    {"aten::add.str(str a, str b) -> str", call_of<+[](Text a, Text b) { return a + b; }>},
    {"aten::len.str(str s) -> int",
     call_of<+[](Text s) { return static_cast<int64_t>(s.size()); }>},
    {"aten::__getitem__.str(str s, int index) -> str",
     call_of<+[](Text s, int64_t i) { return Text(1, s[place_in(i, s.size(), "string")]); }>},
    {"prim::StringIndex(str string, int index) -> str",
     call_of<+[](Text s, int64_t i) { return Text(1, s[place_in(i, s.size(), "string")]); }>},
    {"aten::__contains__.str(str self, str what) -> bool",
     call_of<+[](Text s, Text what) { return s.find(what) != npos; }>},
    {"aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str",
     [](IValue* a, size_t, IValue* out) { out[0] = slice(a); }},
    {"aten::list(str t) -> str[]", call_of<+[](Text s) {
       Pieces out;
       for (const char c : s) {
         out.push_back(Text(1, c));
       }
       return out;
     }>},
    {"aten::str(t elem) -> str", [](IValue* a, size_t, IValue* out) { out[0] = text_of(a[0]); }},
    {"aten::format(str self, ...) -> str", format},
    {"aten::percentFormat(str self, ...) -> str", percent_format},
    {"prim::Print(...) -> ()", print, false},
    {"aten::ord(str string) -> int", call_of<ord>},
    {"aten::chr(int i) -> str", call_of<chr>},
    {"aten::hex(int i) -> str", call_of<+[](int64_t i) { return digits_in_base(i, 16, "0x"); }>},
    {"aten::oct(int i) -> str", call_of<+[](int64_t i) { return digits_in_base(i, 8, "0o"); }>},
    {"aten::bin(int i) -> str", call_of<+[](int64_t i) { return digits_in_base(i, 2, "0b"); }>},
    {"aten::upper(str self) -> str", call_of<change_each<to_upper>>},
    {"aten::lower(str self) -> str", call_of<change_each<to_lower>>},
    {"aten::swapcase(str self) -> str", call_of<change_each<swap_case>>},
    {"aten::title(str self) -> str", call_of<title>},
    {"aten::capitalize(str self) -> str", call_of<capitalize>},
    {"aten::isalnum(str self) -> bool", call_of<all_are<is_alnum>>},
    {"aten::isalpha(str self) -> bool", call_of<all_are<is_alpha>>},
    {"aten::isdecimal(str self) -> bool", call_of<all_are<is_digit>>},
    {"aten::isdigit(str self) -> bool", call_of<all_are<is_digit>>},
    {"aten::isnumeric(str self) -> bool", call_of<all_are<is_digit>>},
    {"aten::isspace(str self) -> bool", call_of<all_are<is_space>>},
    {"aten::islower(str self) -> bool", call_of<all_letters_are<is_lower>>},
    {"aten::isupper(str self) -> bool", call_of<all_letters_are<is_upper>>},
    {"aten::istitle(str self) -> bool", call_of<is_title>},
    {"aten::isprintable(str self) -> bool", call_of<is_printable>},
    {"aten::isidentifier(str self) -> bool", call_of<is_identifier>},
    {"aten::find(str self, str substr, int start=0, int end=-1) -> int", call_of<find>},
    {"aten::rfind(str self, str substr, int start=0, int end=-1) -> int", call_of<rfind>},
    {"aten::index.str(str self, str substr, int start=0, int end=-1) -> int", call_of<index<find>>},
    {"aten::rindex(str self, str substr, int start=0, int end=-1) -> int", call_of<index<rfind>>},
    {"aten::count(str self, str substr, int start=0, int end=-1) -> int", call_of<count>},
    {"aten::startswith(str self, str substr, int start=0, int end=-1) -> bool",
     call_of<starts_with>},
    {"aten::endswith(str self, str substr, int start=0, int end=-1) -> bool", call_of<ends_with>},
    {"aten::split.str(str self, str? separator=None, int max=-1) -> str[]", call_of<split>},
    {"aten::rsplit(str self, str separator=\" \", int max=-1) -> str[]", call_of<rsplit>},
    {"aten::splitlines(str self, bool keepends=False) -> str[]", call_of<splitlines>},
    {"aten::partition(str self, str separator) -> (str, str, str)", partition<false>},
    {"aten::rpartition(str self, str separator) -> (str, str, str)", partition<true>},
    {"aten::join(str self, str[] values) -> str", call_of<join>},
    {"aten::replace(str self, str old, str new, int max=-1) -> str", call_of<replace>},
    {"aten::strip(str self, str chars=\" \n\t\f\v\") -> str", call_of<strip>},
    {"aten::lstrip(str self, str chars=\" \n\t\f\v\") -> str", call_of<lstrip>},
    {"aten::rstrip(str self, str chars=\" \n\t\f\v\") -> str", call_of<rstrip>},
    {"aten::ljust(str self, int width, str fillchar=\" \") -> str", call_of<ljust>},
    {"aten::rjust(str self, int width, str fillchar=\" \") -> str", call_of<rjust>},
    {"aten::center(str self, int width, str fillchar=\" \") -> str", call_of<center>},
    {"aten::zfill(str self, int width) -> str", call_of<zfill>},
    {"aten::expandtabs(str self, int tabsize=8) -> str", call_of<expandtabs>},
};

}  // namespace

void set_printer(PrintLine by) { printer = by; }

BuiltinRows string_builtins() { return {std::begin(rows), std::end(rows)}; }

}  // namespace rushlight::graph
