// Classes that C++ programs bind.
#include <rushlight/custom_class.h>

#include <map>
#include <mutex>

namespace rushlight::library {

namespace {
struct Classes {
  std::mutex mutex;
  std::map<std::string, ClassRecord> by_name;  // those that are there stay in place
};
// Made when the first class is bound, which programs do before main.
Classes& classes() {
  static auto* const made = new Classes();
  return *made;
}
bool is_word(const std::string& text) {
  bool word = !text.empty() && (text[0] < '0' || text[0] > '9');
  for (const char c : text) {
    word = word &&
           (c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
  }
  return word;
}
}  // namespace

ClassRecord& add_class(const std::string& space, const std::string& name,
                       const std::type_info& type) {
  RL_CHECK(is_word(space) && is_word(name), "'", space, ".", name, "' is no name for a class");
  const std::string full = str("__torch__.torch.classes.", space, ".", name);
  name_class(type, full);
  const std::lock_guard<std::mutex> lock(classes().mutex);
  ClassRecord& out = classes().by_name[full];
  out.name = full;
  return out;
}

void add_method(ClassRecord& of, Method method) {
  const size_t own = method.is_static ? 0 : 1;
  const size_t n = method.kernel.arguments.size();
  RL_CHECK(n >= own, of.name, ".", method.name, "() does not take the object");
  RL_CHECK(method.arguments.empty() || method.arguments.size() == n - own, of.name, ".",
           method.name, "() takes ", n - own, " arguments, but ", method.arguments.size(),
           " are named");
  const std::lock_guard<std::mutex> lock(classes().mutex);
  of.methods.push_back(std::make_shared<const Method>(std::move(method)));
}

void add_property(ClassRecord& of, Property property) {
  const std::lock_guard<std::mutex> lock(classes().mutex);
  of.properties.push_back(std::make_shared<const Property>(std::move(property)));
}

const ClassRecord* find_class(const std::string& name) {
  const std::lock_guard<std::mutex> lock(classes().mutex);
  const auto found = classes().by_name.find(name);
  return found == classes().by_name.end() ? nullptr : &found->second;
}

}  // namespace rushlight::library
