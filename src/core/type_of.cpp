// Values of the types that each stand for one kind.
#include <rushlight/type_of.h>

namespace rushlight {

#define RL_TYPE(T, Held, kind)                                           \
  Type TypeOf<T>::type() { return {Type::Kind::kind}; }                  \
  Value TypeOf<T>::box(T v) { return Value(std::move(v)); }              \
  Held TypeOf<T>::get(const Value& v) { return v.get<Held>(); }
RL_FOR_EACH_PLAIN_TYPE(RL_TYPE)
#undef RL_TYPE

}  // namespace rushlight
