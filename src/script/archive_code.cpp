// Names of archives: code/__torch__/a/b.py has what is called __torch__.a.b.Name.
#include "script/archive_code.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "script/prelude.h"

namespace rushlight::script {

using Kind = Expr::Kind;
using TypeKind = Type::Kind;

namespace {

constexpr int max_packages = 100;  // of named tuples and enums within each other
// Texts, whose trees take thirty times their bytes, by the size of the file.
constexpr uint64_t text_anyway = uint64_t{1} << 21;
constexpr uint64_t text_per_byte = 16;
constexpr size_t most_per_byte = 4;  // of expressions and parts of types
constexpr size_t spent_anyway = 30000;

class Package : public Space {
 public:
  Package(ArchiveCode& code, std::string name) : code_(code), name_(std::move(name)) {}
  std::optional<Meaning> find(std::string_view name) override {
    return code_.in_package(name_, name);
  }
  std::string describe() const override { return name_; }

 private:
  ArchiveCode& code_;
  std::string name_;
};

class Constants : public Space {
 public:
  explicit Constants(const ArchiveCode& code) : code_(code) {}
  std::optional<Meaning> find(std::string_view name) override {
    const IValue* const found = code_.constant(name);
    return found != nullptr
               ? std::optional(Meaning::of_constant(*found, rushlight::type_of(*found)))
               : std::nullopt;
  }
  std::string describe() const override { return "CONSTANTS"; }

 private:
  const ArchiveCode& code_;
};

std::pair<std::string, std::string> split(const std::string& qualified) {
  const size_t dot = qualified.rfind('.');
  RL_CHECK(dot != std::string::npos, "'", qualified, "' names nothing in an archive");
  return {qualified.substr(0, dot), qualified.substr(dot + 1)};
}

}  // namespace

ArchiveCode::ArchiveCode(const serialize::CheckpointReader& reader, graph::CompilationUnit& unit)
    : reader_(reader), unit_(unit) {
  const std::string version =
      reader.record(reader.has_record("version") ? "version" : ".data/version");
  std::from_chars(version.data(), version.data() + version.size(), version_);
  RL_CHECK(version_ >= 1 && version_ <= newest_version, "the archive is of version ", version,
           ", and versions 1 to 10 are known: it comes from a later program, or is damaged");
}

void ArchiveCode::spend(size_t n) {
  spent_ += n;
  RL_CHECK(
      spent_ < spent_anyway + most_per_byte * read_,
      "the program of this archive unrolls loops or nests tuples far beyond what its text says");
}

// ---- names ----

std::optional<Meaning> ArchiveCode::find(std::string_view name) {
  if (std::optional<Meaning> op = op_name(name)) {
    return op;
  }
  if (name == "__torch__") {
    return Meaning::of_space(std::make_shared<Package>(*this, "__torch__"));
  }
  if (name == "CONSTANTS") {
    return Meaning::of_space(std::make_shared<Constants>(*this));
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (name == "inf" || name == "nan") {
    const double value = name == "inf" ? infinity : std::numeric_limits<double>::quiet_NaN();
    return Meaning::of_constant(value, Type{TypeKind::Float});
  }
  return {};
}

const IValue* ArchiveCode::constant(std::string_view name) const {
  size_t place = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), place);
  const bool good = name.size() > 1 && name[0] == 'c' && error == std::errc() &&
                    end == name.data() + name.size() && place < constants_.size();
  return good ? &constants_[place] : nullptr;
}

const ArchiveCode::File* ArchiveCode::file_of(const std::string& package) {
  const auto known = files_.find(package);
  if (known != files_.end()) {
    return known->second.get();
  }
  std::string path = "code/" + package + ".py";
  std::replace(path.begin() + 5, path.end() - 3, '.', '/');
  std::unique_ptr<File> file;
  if (reader_.has_record(path)) {
    read_ += reader_.record_size(path);
    RL_CHECK(read_ <= text_anyway + text_per_byte * reader_.size(),
             "the texts of this archive are far larger than its file: ", read_, " bytes");
    file = std::make_unique<File>();
    file->text = std::make_shared<graph::Source>(graph::Source{reader_.record(path), path});
    file->body = parse(file->text);
    for (const Stmt& s : file->body) {
      if (s.kind == Stmt::Kind::Def) {
        file->definitions[s.function->name] = &s;
      } else if (s.kind == Stmt::Kind::ClassDef) {
        file->definitions[s.defined->name] = &s;
      } else {
        fail_at(file->text, s.span, "a file of an archive has classes and functions alone");
      }
    }
  }
  return files_.emplace(package, std::move(file)).first->second.get();
}

std::optional<Meaning> ArchiveCode::in_package(const std::string& package, std::string_view name) {
  const std::string full = str(package, ".", name);
  if (ClassType* const type = unit_.find_class(full)) {
    return Meaning::of_type(Type::of_class(*type));
  }
  if (graph::Function* const function = unit_.find_function(full)) {
    return Meaning::of_function(*function);
  }
  const File* const file = file_of(package);
  if (file != nullptr) {
    const auto found = file->definitions.find(std::string(name));
    if (found != file->definitions.end()) {
      const Stmt& s = *found->second;
      if (s.kind == Stmt::Kind::ClassDef) {
        return Meaning::of_type(Type::of_class(add_class(full, *s.defined, *file)));
      }
      return Meaning::of_function(add_function(full, *s.function, *file));
    }
  }
  if (full.starts_with("__torch__.torch.classes.")) {
    if (library::find_class(full) != nullptr) {
      return Meaning::of_type({TypeKind::Object, {}, full});
    }
  }
  return Meaning::of_space(std::make_shared<Package>(*this, full));
}

ClassType& ArchiveCode::class_named(const std::string& name) {
  const auto [package, base] = split(name);
  const std::optional<Meaning> found = in_package(package, base);
  RL_CHECK(found && found->is(Meaning::Kind::Class) && found->type.definition != nullptr,
           "Unknown type name '", name, "': the archive has no class of that name");
  return *found->type.definition;
}

// ---- classes ----

namespace {
ClassType::Form form_of(const Class& source, const Text& text) {
  if (source.bases.empty()) {
    return ClassType::Form::Class;
  }
  const std::string& base = source.bases[0]->text;
  if (base == "Module") {
    return ClassType::Form::Module;
  }
  if (base == "NamedTuple") {
    return ClassType::Form::NamedTuple;
  }
  if (base == "Enum") {
    return ClassType::Form::Enum;
  }
  if (base == "Interface" || base == "ModuleInterface") {
    return ClassType::Form::Interface;
  }
  fail_at(text, source.bases[0]->span, "a class of an archive derives from no such class");
}
}  // namespace

// Modules and classes may name each other, and are filled one after the other; types of named
// tuples hold what is in them, so that these are filled at once.
ClassType& ArchiveCode::add_class(const std::string& name, const Class& source, const File& file) {
  ClassType& type = unit_.add_class(form_of(source, file.text), name);
  type.of_modules = !source.bases.empty() && source.bases[0]->text == "ModuleInterface";
  unfilled_.push_back({&type, &source, &file});
  const bool at_once =
      type.form == ClassType::Form::NamedTuple || type.form == ClassType::Form::Enum;
  if (at_once) {
    unfilled_.pop_back();
    RL_CHECK(++depth_ < max_packages, "named tuples hold each other without end");
    fill(type, source, file);
    depth_--;
  }
  if (!filling_) {
    filling_ = true;
    while (!unfilled_.empty()) {
      const Unfilled next = unfilled_.back();
      unfilled_.pop_back();
      fill(*next.type, *next.source, *next.file);
    }
    filling_ = false;
  }
  return type;
}

void ArchiveCode::fill(ClassType& type, const Class& source, const File& file) {
  if (type.form == ClassType::Form::Enum) {
    type.add_attribute({"name", Type{TypeKind::String}});
    type.add_attribute({"value", Type{TypeKind::Any}});
  }
  for (const Stmt& s : source.body) {
    switch (s.kind) {
      case Stmt::Kind::Assign:
        add_field(type, s, file);
        break;
      case Stmt::Kind::Def:
        add_method(type, *s.function, file);
        break;
      case Stmt::Kind::Pass:
        break;
      default:
        fail_at(file.text, s.span, "this statement has no place in a class");
    }
  }
  // The names of parameters and buffers come before the attributes themselves.
  for (const Stmt& s : source.body) {
    if (s.kind == Stmt::Kind::Assign && !s.annotation && s.targets[0]->is(Kind::Name)) {
      add_names(type, s, file);
    }
  }
}

void ArchiveCode::add_field(ClassType& type, const Stmt& s, const File& file) {
  const Expr& target = *s.targets[0];
  if (s.annotation && target.is(Kind::Name)) {
    const Type of = type_of(*s.annotation, file.text, *this);
    if (s.value && type.form == ClassType::Form::Enum) {
      fail_at(file.text, s.span, "the members of an enum are assigned without a type");
    }
    if (s.value) {  // Final[T]
      type.constants.emplace_back(target.text, constant_value(*s.value, file.text, *this));
    } else {
      type.add_attribute({target.text, of});
    }
    return;
  }
  // __annotations__["0"] = T, of a name that is no name in Python.
  if (target.is(Kind::Subscript) && target.of[0]->is_name("__annotations__") &&
      target.of[1]->is(Kind::String)) {
    type.add_attribute({target.of[1]->text, type_of(*s.value, file.text, *this)});
    return;
  }
  if (target.is(Kind::Name) && type.form == ClassType::Form::Enum) {
    const IValue value = constant_value(*s.value, file.text, *this);
    const auto member = make_intrusive<Object>(type, nullptr);
    member->slots = {IValue(target.text), value};
    type.attributes[1].type = rushlight::type_of(value);
    type.constants.emplace_back(target.text, member->value());
    return;
  }
  if (!target.is(Kind::Name) || !target.text.starts_with("__")) {
    fail_at(file.text, s.span, "this assignment has no place in a class");
  }
}

// __parameters__ = ["weight", ], __buffers__ = [].
void ArchiveCode::add_names(ClassType& type, const Stmt& s, const File& file) {
  const std::string& what = s.targets[0]->text;
  if (type.form == ClassType::Form::Enum) {
    return;
  }
  if (!s.value->is(Kind::List) || (what != "__parameters__" && what != "__buffers__")) {
    if (s.value->is(Kind::List) &&
        (what == "__forward_hooks__" || what == "__forward_pre_hooks__")) {
      for (const ExprPtr& name : s.value->of) {
        (what == "__forward_hooks__" ? type.hooks : type.pre_hooks).push_back(name->text);
      }
    }
    return;
  }
  for (const ExprPtr& name : s.value->of) {
    const size_t place = type.find_attribute(name->text);
    if (place == ClassType::npos) {
      fail_at(file.text, name->span, str("the class has no attribute '", name->text, "'"));
    }
    (what == "__parameters__" ? type.attributes[place].is_parameter
                              : type.attributes[place].is_buffer) = true;
  }
}

// ---- functions ----

void ArchiveCode::add_method(ClassType& type, const Function& source, const File& file) {
  const bool is_static = std::any_of(source.decorators.begin(), source.decorators.end(),
                                     [](const ExprPtr& e) { return e->is_name("staticmethod"); });
  const std::optional<Type> self = is_static ? std::nullopt : std::optional(Type::of_class(type));
  graph::Schema schema = signature(source, file.text, *this, self);
  graph::Function& made = unit_.add_method(type, source.name, std::move(schema));
  if (type.form != ClassType::Form::Interface) {
    tasks_.push_back({&made, &source, &file});
  }
}

graph::Function& ArchiveCode::add_function(const std::string& name, const Function& source,
                                           const File& file) {
  graph::Function& made =
      unit_.add_function(name, signature(source, file.text, *this, std::nullopt));
  tasks_.push_back({&made, &source, &file});
  return made;
}

void ArchiveCode::compile() {
  while (!tasks_.empty()) {
    const Task task = tasks_.back();
    tasks_.pop_back();
    graph::Schema& schema = task.function->schema;
    std::optional<Type> returns;
    if (!schema.results.empty()) {
      returns = schema.results[0].type;
    }
    Lowering lowering(unit_, *this, task.file->text, version_);
    std::unique_ptr<graph::Graph> graph = lowering.lower(*task.source, schema, returns);
    if (schema.results.empty()) {
      schema.results.push_back({"", *returns});
    }
    task.function->set_graph(std::move(graph));
  }
}

}  // namespace rushlight::script
