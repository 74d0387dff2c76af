// Errors on their way out of modules' forward.
#include <rushlight/nn/module.h>

namespace torch::nn::detail {

namespace {

// The error that this thread has named last, on its way outwards.
struct Failing {
  const Error* error = nullptr;
  std::string said;              // its message since then
  std::string message;           // before anything was added
  const Module* part = nullptr;  // compared and never read
  std::string leaf;
};
Failing& failing() {
  static thread_local auto* const made = new Failing();
  return *made;
}

// "Linear" of torch::nn::LinearImpl.
std::string short_name(const Module& module) {
  std::string name = module.name();
  const size_t space = name.rfind("::");
  name = space == std::string::npos ? name : name.substr(space + 2);
  const size_t end = name.size() > 4 ? name.size() - 4 : 0;
  return end > 0 && name.compare(end, 4, "Impl") == 0 ? name.substr(0, end) : name;
}

// Where a part lies within a module; nothing where it does not.
std::optional<std::string> path_of(const Module* part, const Module& module) {
  std::optional<std::string> found;
  module.apply([&](const std::string& name, const Module& m) {
    if (&m == part && !found.has_value()) {
      found = name;
    }
  });
  return found;
}

}  // namespace

void name_failing_part(Error& error, const Module& module) noexcept {
  try {
    Failing& now = failing();
    std::string where;
    if (now.error == &error && now.said == error.what()) {
      const std::optional<std::string> path = path_of(now.part, module);
      if (!path.has_value() || path->empty()) {
        return;
      }
      where = short_name(module) + ": " + *path + " (" + now.leaf + ")";
    } else {
      now = {&error, {}, error.what(), &module, short_name(module)};
      const std::string& name = module.name_in_parent_;
      where = name.empty() ? now.leaf : name + " (" + now.leaf + ")";
    }
    now.said = now.message + "\nin the forward pass of " + where;
    error = Error(now.said);  // of the same class still
  } catch (...) {  // NOLINT: there is no memory for the text; the error itself is on its way
  }
}

}  // namespace torch::nn::detail
