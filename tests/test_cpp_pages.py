"""Pages of C++ headers: every public class of a header is on its page, with what its comment says."""

import re

from docs import headers

TEXT = """// things: what is here.
#pragma once
#include <vector>
#define TWO(a) \\
  a, a
namespace rushlight {
namespace detail { class Hidden {}; }
// A thing; "{" in texts is no brace.
template <class T, class = std::vector<T>>
class RL_API Thing : public Base<T> {
 public:
  // Makes one
  // of a size.
  explicit Thing(int n = 3) : n_(n), names_{"}"} {}
  int size() const { return n_; }  // never negative
  enum class Kind : uint8_t { Small, Large };

 protected:
  virtual void grow(const char* by = "{");

 private:
  int n_ = 0;
};
RL_API bool operator==(const Thing<int>& a, const Thing<int>& b);
inline constexpr int kMost = 4;
using Things = std::vector<Thing<int>>;
}  // namespace rushlight
"""


def test_a_header_is_read():
    thing, equal, most, things = headers.declarations(TEXT)
    assert thing.name == "Thing" and thing.comment == 'A thing; "{" in texts is no brace.'
    assert thing.text == ("template <class T, class = std::vector<T>> class Thing : public Base<T>")
    assert [(m.text, m.comment) for m in thing.members] == [
        ("explicit Thing(int n = 3)", "Makes one of a size."),
        ("int size() const", "never negative"),
        ("enum class Kind : uint8_t { Small, Large }", ""),
        ('virtual void grow(const char* by = "{")', ""),
    ]
    assert equal.text == "bool operator==(const Thing<int>& a, const Thing<int>& b)"
    assert most.text == "inline constexpr int kMost = 4"
    assert things.text == "using Things = std::vector<Thing<int>>"
    assert headers.intro(TEXT) == "things: what is here."


def test_every_header_has_a_page_with_its_classes():
    pages = headers.generate()
    assert len(pages) == len(headers.public_headers()) + 1 > 90
    missing, seen = [], 0
    for path in headers.public_headers():
        text = path.read_text()
        page = headers.page(path)
        for found in re.finditer(r"(?m)^(?:class|struct) RL_API (\w+)[^;{]*\{", text):
            spaces = re.findall(r"(?m)^(?:inline )?namespace ([\w:]+) \{", text[: found.start()])
            if spaces and set(spaces[-1].split("::")) & headers.INNER:
                continue
            seen += 1
            if not re.search(rf"\b(?:class|struct) {found[1]}\b", page):
                missing.append((path.name, found[1]))
    assert seen > 140 and not missing, missing


def test_braces_on_the_pages_fit():
    for name, page in headers.generate().items():
        for block in re.findall(r"```cpp\n(.*?)\n```", page, re.DOTALL):
            plain = re.sub(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", "", block)
            assert plain.count("{") == plain.count("}"), (name, block[:200])
            assert plain.count("(") == plain.count(")"), (name, block[:200])
