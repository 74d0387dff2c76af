// Reads types in either spelling: "int[]?" and "Optional[List[int]]".
#include <cctype>

#include <rushlight/error.h>
#include <rushlight/type.h>

namespace rushlight {

TypeNames::~TypeNames() = default;

namespace {

using Kind = Type::Kind;
constexpr int max_depth = 64;

struct Word {
  const char* text;
  Kind kind;
};
constexpr Word words[] = {
    {"Any", Kind::Any},
    {"Tensor", Kind::Tensor},
    {"int", Kind::Int},
    {"SymInt", Kind::Int},
    {"float", Kind::Float},
    {"bool", Kind::Bool},
    {"SymBool", Kind::Bool},
    {"Scalar", Kind::Scalar},
    {"number", Kind::Scalar},
    {"str", Kind::String},
    {"ScalarType", Kind::ScalarType},
    {"Device", Kind::Device},
    {"Layout", Kind::Layout},
    {"MemoryFormat", Kind::MemoryFormat},
    {"Generator", Kind::Generator},
    {"None", Kind::None},
    {"NoneType", Kind::None},
    {"complex", Kind::Complex},
    {"Function", Kind::Function},
    {"Stream", Kind::Stream},
    {"Storage", Kind::Storage},
    {"AnyClassType", Kind::Any},
    {"AnyEnumType", Kind::Enum},
};
struct Generic {
  const char* text;
  Kind kind;
  size_t count;  // of types inside; 0: any
};
constexpr Generic generics[] = {
    {"List", Kind::List, 1},         {"Tuple", Kind::Tuple, 0}, {"Dict", Kind::Dict, 2},
    {"Optional", Kind::Optional, 1}, {"Union", Kind::Union, 0}, {"Future", Kind::Future, 1},
    {"Await", Kind::Await, 1},       {"RRef", Kind::RRef, 1},
};

class Reader {
 public:
  Reader(std::string_view text, const TypeNames* names) : text_(text), names_(names) {}

  Type parse_all() {
    Type out = type();
    skip_space();
    if (at_ != text_.size()) {
      fail("the type ends here");
    }
    return out;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      at_++;
    }
  }
  bool accept(char c) {
    skip_space();
    const bool is_there = at_ < text_.size() && text_[at_] == c;
    at_ += is_there ? 1 : 0;
    return is_there;
  }
  void expect(char c) {
    if (!accept(c)) {
      fail(str("expected '", c, "'"));
    }
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(str("the type '", text_, "' is wrong at character ", at_, ": ", what));
  }

  std::string_view word() {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '_' || text_[at_] == '.')) {
      at_++;
    }
    if (at_ == begin) {
      fail("expected the name of a type");
    }
    return text_.substr(begin, at_ - begin);
  }

  Type type() {
    if (++depth_ > max_depth) {
      fail("it is nested too deeply");
    }
    Type out = accept('(') ? Type::tuple(list_until(')')) : parse_named();
    while (true) {
      if (accept('(')) {  // Tensor(a!): which memory it shares is not part of the type
        alias();
      } else if (accept('[')) {
        skip_digits();
        expect(']');
        out = Type::list(std::move(out));
      } else if (accept('?')) {
        out = Type::optional(std::move(out));
      } else {
        break;
      }
    }
    depth_--;
    return out;
  }

  void alias() {
    while (at_ < text_.size() && text_[at_] != ')') {
      at_++;
    }
    expect(')');
  }
  void skip_digits() {
    skip_space();
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      at_++;
    }
  }

  std::vector<Type> list_until(char end) {
    std::vector<Type> out;
    if (accept(end)) {
      return out;
    }
    do {
      if (end == ']' && accept('(')) {  // Tuple[()]
        expect(')');
        continue;
      }
      out.push_back(type());
    } while (accept(','));
    expect(end);
    return out;
  }

  Type parse_named() {
    const std::string_view name = word();
    for (const Generic& generic : generics) {
      if (name == generic.text ||
          (name.substr(0, 7) == "typing." && name.substr(7) == generic.text)) {
        return of_generic(generic);
      }
    }
    for (const Word& known : words) {
      if (name == known.text) {
        return {known.kind};
      }
    }
    if (name.size() == 1 && std::islower(static_cast<unsigned char>(name[0])) != 0) {
      return Type::variable(std::string(name));
    }
    if (name.size() == 2 && name[0] == 't' &&
        std::isdigit(static_cast<unsigned char>(name[1])) != 0) {
      return Type::variable(std::string(name));
    }
    if (names_ != nullptr) {
      if (std::optional<Type> found = names_->find(name)) {
        return *found;
      }
    }
    fail(str("there is no type '", name, "'"));
  }

  Type of_generic(const Generic& generic) {
    std::vector<Type> of;
    if (accept('[')) {
      of = list_until(']');
    } else if (accept('(')) {
      of = list_until(')');
    } else {
      fail(str("expected what it is a ", generic.text, " of"));
    }
    if (generic.count != 0 && of.size() != generic.count) {
      fail(str("expected ", generic.count, " types in ", generic.text, ", got ", of.size()));
    }
    if (generic.kind == Kind::Optional) {
      return Type::optional(std::move(of[0]));
    }
    if (generic.kind == Kind::Union) {
      if (of.empty()) {
        fail("expected the members of a Union");
      }
      return Type::union_of(of);
    }
    return {generic.kind, std::move(of)};
  }

  std::string_view text_;
  const TypeNames* names_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Type parse_type(std::string_view text, const TypeNames* names) {
  return Reader(text, names).parse_all();
}

}  // namespace rushlight
