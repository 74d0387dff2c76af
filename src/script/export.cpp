// Modules as archives that PyTorch's jit.load reads as well.
#include "script/export.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "script/code_writer.h"
#include "serialize/pickled_tensors.h"

namespace rushlight::script {

using namespace serialize;
using TypeKind = Type::Kind;

namespace {

// "__torch__.a.b.Net" as "__torch__.a.b" and "Net".
std::pair<std::string, std::string> split(const std::string& qualified) {
  const size_t dot = qualified.rfind('.');
  return dot == std::string::npos ? std::pair<std::string, std::string>("__torch__", qualified)
                                  : std::pair(qualified.substr(0, dot), qualified.substr(dot + 1));
}

// Values as a pickle of TorchScript.
class ValuePickler {
 public:
  explicit ValuePickler(Mentions& mentions) : mentions_(mentions) {}

  void value(const IValue& v, const Type& type, int depth = 0) {
    RL_CHECK(depth < 1000, "values are nested too deep to be saved");
    if (v.isNone()) {
      p_.none();
    } else if (v.isTensor()) {
      if (v.toTensor().defined()) {
        tensors_.write(v.toTensor());
      } else {
        p_.none();
      }
    } else if (v.isBool()) {
      p_.boolean(v.toBool());
    } else if (v.isInt()) {
      p_.integer(v.toInt());
    } else if (v.isDouble()) {
      p_.real(v.toDouble());
    } else if (v.isScalar()) {
      const auto number = v.toScalar().to<complex<double>>();
      write_call("builtins", "complex", [&] {
        p_.real(number.re);
        p_.real(number.im);
      });
    } else if (v.isString()) {
      p_.string(v.toStringRef());
    } else if (v.isDevice()) {
      write_call("torch", "device", [&] { p_.string(v.toDevice().str()); });
    } else if (v.isTuple()) {
      tuple(v, type, depth);
    } else if (v.isList()) {
      list(v, type, depth);
    } else if (v.isGenericDict()) {
      dict(v, type, depth);
    } else if (Object* const object = object_of(v)) {
      this->object(*object, depth);
    } else {
      throw Error(str("a value of type ", type.annotation(), " cannot be saved"));
    }
  }
  void mark() { p_.mark(); }
  void tuple() { p_.tuple(); }
  std::string finish() { return p_.finish(); }
  const std::vector<Storage>& storages() const { return tensors_.storages(); }

 private:
  template <class F>
  void write_call(const char* module, const char* name, const F& arguments) {
    p_.global(module, name);
    p_.mark();
    arguments();
    p_.tuple();
    p_.reduce();
  }

  void tuple(const IValue& v, const Type& type, int depth) {
    const IValue::Items& items = v.items();
    const bool typed = type.is_tuple() && type.of.size() == items.size();
    p_.mark();
    for (size_t i = 0; i < items.size(); i++) {
      value(items[i], typed ? type.of[i] : type_of(items[i]), depth + 1);
    }
    p_.tuple();
  }

  static Type list_type(const IValue& v, const Type& type, TypeKind kind) {
    for (const Type& member : type.members()) {
      if (member.is(kind)) {
        return member;
      }
    }
    return type_of(v);
  }

  void list(const IValue& v, const Type& declared, int depth) {
    const Type type = list_type(v, declared, TypeKind::List);
    const auto contents = [&] {
      p_.empty_list();
      p_.mark();
      for (const IValue& item : v.toListRef()) {
        value(item, type.of[0], depth + 1);
      }
      p_.append_items();
    };
    constexpr std::pair<TypeKind, const char*> known[] = {{TypeKind::Int, "build_intlist"},
                                                          {TypeKind::Float, "build_doublelist"},
                                                          {TypeKind::Bool, "build_boollist"},
                                                          {TypeKind::Tensor, "build_tensorlist"}};
    for (const auto& [kind, function] : known) {
      if (type.of[0].is(kind)) {
        write_call("torch.jit._pickle", function, contents);
        return;
      }
    }
    write_tagged(type, contents);
  }

  void dict(const IValue& v, const Type& declared, int depth) {
    const Type type = list_type(v, declared, TypeKind::Dict);
    write_tagged(type, [&] {
      p_.empty_dict();
      p_.mark();
      for (const auto& [key, item] : v.dict_items()->pairs) {
        value(key, type.of[0], depth + 1);
        value(item, type.of[1], depth + 1);
      }
      p_.set_items();
    });
  }

  template <class F>
  void write_tagged(const Type& type, const F& contents) {
    mentions_.add(type);
    write_call("torch.jit._pickle", "restore_type_tag", [&] {
      contents();
      p_.string(type.annotation());
    });
  }

  void object(Object& object, int depth) {
    const auto [place, fresh] = objects_.emplace(&object, objects_.size());
    const uint32_t number = place->second;
    if (!fresh) {
      RL_CHECK(open_.count(&object) == 0, "an object of ", object.type->name,
               " is within itself, which archives cannot hold");
      p_.write_get(number);
      return;
    }
    open_.insert(&object);
    ClassType& type = *object.type;
    mentions_.add(type);
    const auto [module, name] = split(type.name);
    p_.global(module, name);
    if (type.form == ClassType::Form::Enum) {
      value(object.slots.at(1), type.attributes.at(1).type, depth + 1);
      p_.reduce();
      p_.remember(number);
      open_.erase(&object);
      return;
    }
    p_.empty_tuple();
    p_.make_object();
    if (graph::Function* const state = type.find_method("__getstate__")) {
      value(state->run({object.value()}).at(0), state->graph().outputs().at(0)->type, depth + 1);
    } else {
      p_.empty_dict();
      p_.mark();
      for (size_t i = 0; i < type.attributes.size(); i++) {
        p_.string(type.attributes[i].name);
        value(object.slots[i], type.attributes[i].type, depth + 1);
      }
      p_.set_items();
    }
    p_.build();
    p_.remember(number);  // PyTorch's reader has the object only now
    open_.erase(&object);
  }

  Mentions& mentions_;
  PickleWriter p_;
  TensorPickler tensors_{p_};
  std::unordered_map<const Object*, uint32_t> objects_;
  std::unordered_set<const Object*> open_;  // that are being written
};

class Records {
 public:
  Records(Sink& sink, std::string archive) : zip_(sink), archive_(std::move(archive) + "/") {}
  void add(const std::string& name, std::string_view bytes) {
    zip_.add(archive_ + name, bytes.data(), bytes.size());
  }
  void add(const std::string& folder, const std::vector<Storage>& storages) {
    for (size_t i = 0; i < storages.size(); i++) {
      add(str(folder, "/", i), {static_cast<const char*>(storages[i]->data()),
                                static_cast<size_t>(storages[i]->nbytes())});
    }
  }
  void finish() { zip_.finish(); }

 private:
  ZipWriter zip_;
  std::string archive_;
};

// The files of all classes and functions that have been mentioned, and of those that they mention.
std::map<std::string, std::string> code_files(Mentions& mentions) {
  std::map<std::string, std::string> files;
  std::set<std::string> names;
  size_t classes = 0;
  size_t functions = 0;
  while (classes < mentions.classes.size() || functions < mentions.functions.size()) {
    if (classes < mentions.classes.size()) {
      ClassType& type = *mentions.classes[classes++];
      RL_CHECK(names.insert(type.name).second, "two classes are named ", type.name,
               ", and an archive holds one of a name: one of them comes from another archive");
      files[split(type.name).first] += class_text(type, mentions);
    } else {
      graph::Function& function = *mentions.functions[functions++];
      files[split(function.name()).first] += function_text(function, mentions);
    }
  }
  return files;
}

}  // namespace

void write_module(const jit::Module& module, Sink& sink, const std::string& archive,
                  const jit::ExtraFilesMap& extra_files) {
  Mentions mentions;
  ValuePickler objects(mentions);
  objects.value(module.object()->value(), Type::of_class(module.class_type()));
  Records records(sink, archive);
  records.add("data.pkl", objects.finish());
  records.add("byteorder", "little");
  records.add("data", objects.storages());
  for (const auto& [package, text] : code_files(mentions)) {
    std::string path = package;
    std::replace(path.begin(), path.end(), '.', '/');
    records.add("code/" + path + ".py", text);
  }
  ValuePickler constants(mentions);
  constants.mark();
  for (size_t i = 0; i < mentions.constants.size(); i++) {
    constants.value(mentions.constants[i], type_of(mentions.constants[i]));
  }
  constants.tuple();
  records.add("constants.pkl", constants.finish());
  records.add("constants", constants.storages());
  for (const auto& [name, contents] : extra_files) {
    records.add("extra/" + name, contents);
  }
  records.add("version", "10\n");
  records.finish();
}

}  // namespace rushlight::script
