// Objects that count who holds them, by libtorch's names: what lists, dicts and bound classes
// (custom_class.h) are.
#pragma once

#include <rushlight/export.h>
#include <rushlight/ref.h>

namespace rushlight {

struct RL_API CustomClassHolder : RefCounted {
  CustomClassHolder() = default;
  CustomClassHolder(const CustomClassHolder&) : RefCounted() {}
  CustomClassHolder& operator=(const CustomClassHolder&) { return *this; }
  virtual ~CustomClassHolder();
  void release() const {
    if (drop()) {
      delete this;
    }
  }
};
using intrusive_ptr_target = CustomClassHolder;

template <class T>
class intrusive_ptr : public Ref<T> {
 public:
  using element_type = T;
  using Ref<T>::Ref;
  intrusive_ptr() = default;
  intrusive_ptr(Ref<T> ref) : Ref<T>(std::move(ref)) {}
  template <class U, std::enable_if_t<std::is_convertible_v<U*, T*>, int> = 0>
  intrusive_ptr(const intrusive_ptr<U>& other) : Ref<T>(static_cast<T*>(other.get())) {}
  bool defined() const { return this->get() != nullptr; }
  size_t use_count() const {
    return defined() ? static_cast<size_t>(this->get()->RefCounted::use_count()) : 0;
  }
  template <class... A>
  static intrusive_ptr make(A&&... arguments) {
    return Ref<T>::steal(new T(std::forward<A>(arguments)...));
  }
};
template <class T, class... A>
intrusive_ptr<T> make_intrusive(A&&... arguments) {
  return intrusive_ptr<T>::make(std::forward<A>(arguments)...);
}

}  // namespace rushlight
