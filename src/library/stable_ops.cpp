// Ops of the stable ABI: those that a library defines, and calls of any op by its schema.
#include <cstring>
#include <memory>

#include <rushlight/graph_function.h>
#include <rushlight/library.h>

#include "library/stable_values.h"

struct TorchLibraryOpaque {
  rushlight::Library library;
  std::string space;
  std::optional<rushlight::DispatchKey> key;
};

namespace rushlight::stable {
namespace {

using StackFunction = void (*)(StableIValue* stack, uint64_t num_arguments, uint64_t num_results);

// Takes all of them from the stack, also where one throws.
std::vector<Value> take_all(const StableIValue* stack, const std::vector<graph::Argument>& of) {
  std::vector<Value> values(of.size());
  std::exception_ptr error;
  for (size_t i = 0; i < of.size(); i++) {
    try {
      values[i] = take(stack[i], of[i].type);
    } catch (...) {
      error = error ? error : std::current_exception();
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
  return values;
}

void call_op(const char* name, const char* overload, StableIValue* stack) {
  const OperatorHandle op(name, overload);
  const graph::Schema& schema = graph::schema_of(op.op());
  Stack values = take_all(stack, schema.arguments);
  op.callBoxed(values);
  RL_CHECK(values.size() == schema.results.size(), name, "() gave ", values.size(),
           " results, not ", schema.results.size());
  for (size_t i = 0; i < values.size(); i++) {
    stack[i] = give(values[i], schema.results[i].type);
  }
}

// The function as one of values.
library::Kernel kernel_of(StackFunction function) {
  library::Kernel kernel = library::make_kernel([function](const OperatorHandle* op, Stack& stack) {
    const graph::Schema& schema = graph::schema_of(op->op());
    const size_t n = schema.arguments.size();
    RL_CHECK(stack.size() >= n, schema.qualified_name(), "() takes ", n, " arguments, got ",
             stack.size());
    std::vector<StableIValue> given(std::max(n, schema.results.size()));
    for (size_t i = 0; i < n; i++) {
      given[i] = give(stack[stack.size() - n + i], schema.arguments[i].type);
    }
    stack.resize(stack.size() - n);
    function(given.data(), n, schema.results.size());
    for (Value& value : take_all(given.data(), schema.results)) {
      stack.push_back(std::move(value));
    }
  });
  kernel.typed = false;
  return kernel;
}

AOTITorchError make_library(Library::Kind kind, const char* space, const char* key,
                            TorchLibraryHandle* ret) {
  return run([&] {
    std::optional<DispatchKey> place;
    if (key != nullptr && *key != '\0') {
      place = library::key_named(key);
      RL_CHECK(place.has_value(), "STABLE_TORCH_LIBRARY_IMPL(", space, ", ", key,
               "): there is no dispatch key of this name");
    }
    *ret = new TorchLibraryOpaque{Library(kind, space, place), space, place};
  });
}

AOTITorchError implement(TorchLibraryHandle self, const char* name, StackFunction function) {
  return run([&] {
    const bool is_full = std::strstr(name, "::") != nullptr;
    library::implement(is_full ? name : self->space + "::" + name,
                       self->key.value_or(DispatchKey::CompositeImplicitAutograd),
                       kernel_of(function));
  });
}

}  // namespace
}  // namespace rushlight::stable

using namespace rushlight;  // NOLINT: the functions of C have no namespace

AOTITorchError aoti_torch_call_dispatcher(const char* name, const char* overload,
                                          StableIValue* stack) {
  return stable::run([&] { stable::call_op(name, overload, stack); });
}
AOTITorchError torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack,
                                     uint64_t) {
  return aoti_torch_call_dispatcher(name, overload, stack);
}

AOTITorchError aoti_torch_library_init_def(const char* space, const char*, uint32_t,
                                           TorchLibraryHandle* ret) {
  return stable::make_library(Library::DEF, space, nullptr, ret);
}
AOTITorchError aoti_torch_library_init_fragment(const char* space, const char*, uint32_t,
                                                TorchLibraryHandle* ret) {
  return stable::make_library(Library::FRAGMENT, space, nullptr, ret);
}
AOTITorchError aoti_torch_library_init_impl(const char* space, const char* key, const char*,
                                            uint32_t, TorchLibraryHandle* ret) {
  return stable::make_library(Library::IMPL, space, key, ret);
}
AOTITorchError aoti_torch_library_def(TorchLibraryHandle self, const char* schema) {
  return torch_library_def_with_tags(self, schema, nullptr, 0);
}
AOTITorchError torch_library_def_with_tags(TorchLibraryHandle self, const char* schema,
                                           const int32_t* tags, int32_t num_tags) {
  return stable::run([&] {
    std::vector<Tag> list;
    for (int32_t i = 0; i < num_tags; i++) {
      RL_CHECK(tags[i] >= 0 && tags[i] <= static_cast<int32_t>(Tag::view_copy), "def(\"", schema,
               "\"): there is no tag of the number ", tags[i]);
      list.push_back(static_cast<Tag>(tags[i]));
    }
    self->library.def(schema, list);
  });
}
AOTITorchError torch_library_set_python_module(TorchLibraryHandle self, const char* module,
                                               const char*) {
  return stable::run([&] { self->library.set_python_module(module); });
}
AOTITorchError aoti_torch_library_impl(TorchLibraryHandle self, const char* name,
                                       void (*function)(StableIValue*, uint64_t, uint64_t)) {
  return stable::implement(self, name, function);
}
AOTITorchError torch_library_impl(TorchLibraryHandle self, const char* name,
                                  void (*function)(StableIValue*, uint64_t, uint64_t), uint64_t) {
  return stable::implement(self, name, function);
}
AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle self) {
  return stable::run([&] { delete self; });  // what it has defined stays
}

// ---- lists, strings, boxes ----

AOTITorchError torch_new_list_reserve_size(size_t size, StableListHandle* ret) {
  return stable::run([&] {
    auto list = std::make_unique<StableListOpaque>();
    list->items.reserve(size);
    *ret = list.release();
  });
}
AOTITorchError torch_list_size(StableListHandle list, size_t* ret) {
  return stable::run([&] { *ret = list->items.size(); });
}
AOTITorchError torch_list_get_item(StableListHandle list, size_t i, StableIValue* ret) {
  return stable::run([&] { *ret = list->items.at(i); });
}
AOTITorchError torch_list_set_item(StableListHandle list, size_t i, StableIValue item) {
  return stable::run([&] { list->items.at(i) = item; });
}
AOTITorchError torch_list_push_back(StableListHandle list, StableIValue item) {
  return stable::run([&] { list->items.push_back(item); });
}
AOTITorchError torch_delete_list(StableListHandle list) {
  return stable::run([&] { delete list; });
}
AOTITorchError torch_new_string_handle(const char* data, size_t size, StringHandle* ret) {
  return stable::run([&] { *ret = new StringOpaque{std::string(data, size)}; });
}
AOTITorchError torch_delete_string(StringHandle string) {
  return stable::run([&] { delete string; });
}
AOTITorchError torch_string_length(StringHandle string, size_t* ret) {
  return stable::run([&] { *ret = string->text.size(); });
}
AOTITorchError torch_string_c_str(StringHandle string, const char** ret) {
  return stable::run([&] { *ret = string->text.c_str(); });
}
AOTITorchError torch_new_stable_ivalue(StableIValue** ret) {
  return stable::run([&] { *ret = new StableIValue(0); });
}
AOTITorchError torch_delete_stable_ivalue(StableIValue* value) {
  return stable::run([&] { delete value; });
}
