// C++ classes bound for Python and for schemas: class_<T>("namespace", "Name"), where T derives
// from CustomClassHolder. Python finds them as classes.NAMESPACE.NAME, schemas as
// __torch__.torch.classes.NAMESPACE.NAME.
#pragma once

#include <rushlight/boxed_function.h>

namespace rushlight {

// A parameter's name, and what it is where it is not given: arg("n") = 3.
struct arg {
  explicit arg(std::string name) : name_(std::move(name)) {}
  arg& operator=(IValue value) {
    fallback_ = std::move(value);
    return *this;
  }
  static arg none() { return arg("") = IValue(); }
  std::string name_;
  std::optional<IValue> fallback_;
};

namespace library {

struct Method {
  std::string name;
  std::string doc;
  Kernel kernel;
  std::vector<arg> arguments;  // without the object; empty: they have no names
  bool is_static = false;
};
struct Property {
  std::string name;
  Kernel get;
  Kernel set;  // of one that cannot be written: empty
};
struct ClassRecord {
  std::string name;  // "__torch__.torch.classes.space.Name"
  std::vector<std::shared_ptr<const Method>> methods;
  std::vector<std::shared_ptr<const Property>> properties;
};
// They stay where they are, and only grow.
RL_API ClassRecord& add_class(const std::string& space, const std::string& name,
                              const std::type_info& type);
RL_API void add_method(ClassRecord& of, Method method);
RL_API void add_property(ClassRecord& of, Property property);
RL_API const ClassRecord* find_class(const std::string& name);  // null where there is none

}  // namespace library

namespace detail {
template <class... A>
struct types {};
template <class F>
struct InitLambda {
  F function;
};
}  // namespace detail
// The constructor that takes these.
template <class... A>
detail::types<A...> init() {
  return {};
}
// A function that makes the object stands for a constructor.
template <class F>
detail::InitLambda<F> init(F&& function) {
  return {std::forward<F>(function)};
}

template <class C>
class class_ {
  static_assert(std::is_base_of_v<CustomClassHolder, C>, "a bound class is a CustomClassHolder");

 public:
  class_(const std::string& space, const std::string& name, const std::string& = "")
      : record_(library::add_class(space, name, typeid(C))) {}

  template <class... A>
  class_& def(detail::types<A...>, std::string doc = "", std::vector<arg> arguments = {}) {
    intrusive_ptr<C> (*signature)(A...) = nullptr;
    return add("__init__",
               library::kernel_as([](A... a) { return make_intrusive<C>(std::forward<A>(a)...); },
                                  signature),
               std::move(doc), std::move(arguments), true);
  }
  template <class F>
  class_& def(detail::InitLambda<F> made, std::string doc = "", std::vector<arg> arguments = {}) {
    return add("__init__", library::kernel_of(std::move(made.function)), std::move(doc),
               std::move(arguments), true);
  }
  template <class F>
  class_& def(std::string name, F function, std::string doc = "", std::vector<arg> arguments = {}) {
    return add(std::move(name), library::kernel_of(std::move(function)), std::move(doc),
               std::move(arguments), false);
  }
  template <class F>
  class_& def_static(std::string name, F function, std::string doc = "") {
    return add(std::move(name), library::kernel_of(std::move(function)), std::move(doc), {}, true);
  }
  template <class G>
  class_& def_property(std::string name, G get, const std::string& = "") {
    library::add_property(record_, {std::move(name), library::kernel_of(std::move(get)), {}});
    return *this;
  }
  template <class G, class S, std::enable_if_t<!std::is_convertible_v<S, std::string>, int> = 0>
  class_& def_property(std::string name, G get, S set, const std::string& = "") {
    library::add_property(record_, {std::move(name), library::kernel_of(std::move(get)),
                                    library::kernel_of(std::move(set))});
    return *this;
  }
  template <class T>
  class_& def_readonly(std::string name, T C::* field) {
    return def_property(std::move(name),
                        [field](const intrusive_ptr<C>& self) { return self.get()->*field; });
  }
  template <class T>
  class_& def_readwrite(std::string name, T C::* field) {
    return def_property(
        std::move(name), [field](const intrusive_ptr<C>& self) { return self.get()->*field; },
        [field](const intrusive_ptr<C>& self, T value) { self.get()->*field = std::move(value); });
  }
  // What copies and pickles hold: `get` takes the object, `set` makes one of what `get` gave.
  template <class G, class S>
  class_& def_pickle(G get, S set) {
    add("__getstate__", library::kernel_of(std::move(get)), "", {}, false);
    return add("__setstate__", library::kernel_of(std::move(set)), "", {}, true);
  }

 private:
  class_& add(std::string name, library::Kernel kernel, std::string doc, std::vector<arg> arguments,
              bool is_static) {
    library::add_method(record_, {std::move(name), std::move(doc), std::move(kernel),
                                  std::move(arguments), is_static});
    return *this;
  }
  library::ClassRecord& record_;
};

}  // namespace rushlight
