// Boxed values: what each kind holds, who owns it, how lists are read, and what is refused.
#include <complex>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <rushlight/ivalue.h>
#include <rushlight/rushlight.h>

#include "check.h"

using namespace rushlight;

namespace {

struct Counter : CustomClassHolder {
  explicit Counter(int& alive) : alive(alive) { alive++; }
  ~Counter() override { alive--; }
  int& alive;
};

// A value of every kind, each of which owns something of its own.
std::vector<Value> one_of_each() {
  return {
      Value(),
      Value(true),
      Value(int64_t{7}),
      Value(Scalar(~uint64_t{0})),
      Value(2.5),
      Value(kBFloat16),
      Value(kStrided),
      Value(MemoryFormat::ChannelsLast),
      Value(Device("cuda:1")),
      Value(ones({2})),
      Value(Scalar(complex<double>(1, 2))),
      Value("text"),
      Value(Generator(kCPU)),
      Value(DimVector({1, 2})),
      Value(std::vector<double>{0.5}),
      Value(std::vector<Scalar>{1, 2.5}),
      Value(std::vector<Tensor>{ones({1}), zeros({1})}),
      Value(std::vector<std::optional<Tensor>>{std::nullopt, ones({1})}),
      Value(TensorMeta(ones({2, 3}))),
      Value(std::vector<TensorMeta>{TensorMeta(ones({2}))}),
      Value(TensorOptions(kDouble)),
      Value::list({Value(1), Value("two")}),
      Value::tuple({Value(1), Value("two")}),
      Value(std::map<std::string, int64_t>{{"a", 1}}),
  };
}

}  // namespace

RL_TEST(kinds) {
  const std::vector<Value> all = one_of_each();
  for (size_t i = 0; i < all.size(); i++) {
    CHECK(all[i].kind() == static_cast<Value::Kind>(i));
    Value copy = all[i];
    const Value moved = std::move(copy);
    CHECK(moved.kind() == all[i].kind());
    CHECK(copy.is_none());  // NOLINT(bugprone-use-after-move): what a move leaves behind
    copy = moved;
    CHECK(copy.kind() == all[i].kind());
    copy = *&copy;
    CHECK(copy.kind() == all[i].kind());
  }
}

RL_TEST(numbers) {
  CHECK(Value(3).toInt() == 3 && Value(3).toDouble() == 3.0 && Value(true).toBool());
  CHECK(Value(2.0).toInt() == 2);
  CHECK(Value(Scalar(~uint64_t{0})).toScalar().as<uint64_t>() == ~uint64_t{0});
  CHECK(Value(Scalar(complex<double>(1, 2))).toScalar().as<complex<double>>().im == 2);
  CHECK(!Value(true).isInt() && Value(true).isScalar() && !Value("1").isScalar());
  CHECK_THROWS(Error, "read as a number", Value("1").toInt());
  CHECK_THROWS(Error, "without overflow", Value(Scalar(~uint64_t{0})).toInt());
  CHECK(Value(3).get<Tensor>().item<int64_t>() == 3);  // a number where an op takes a tensor
}

RL_TEST(owners) {
  const Tensor t = ones({2});
  {
    const Value v(t);
    const Value w = v;  // NOLINT(performance-unnecessary-copy-initialization)
    CHECK(t.use_count() == 3);
    CHECK(&v.toTensor() != nullptr && v.toTensor().is_same(t));
  }
  CHECK(t.use_count() == 1);
  const Value items = Value::list({Value(t)});
  const Value same = items;
  same.items().emplace_back(5);
  CHECK(items.items().size() == 2 && items.items()[1].toInt() == 5);
  // What ops take is copied by who takes it.
  Value list(std::vector<Tensor>{t});
  const Value before = list;
  list.change_tensors([](const Tensor& x) { return x + 1; });
  CHECK(before.get<std::vector<Tensor>>()[0].is_same(t));
  CHECK(list.get<std::vector<Tensor>>()[0][0].item<float>() == 2);
}

RL_TEST(lists) {
  const Value ints = Value::list({Value(1), Value(2)});
  CHECK(ints.isIntList() && !ints.isDoubleList() && ints.isList());
  CHECK(ints.get<DimVector>().size() == 2 && ints.toIntVector()[1] == 2);
  CHECK(ints.get<std::vector<double>>()[1] == 2.0);
  CHECK(Value(5).get<DimVector>().size() == 1);
  const Value tensors = Value::list({Value(ones({1})), Value()});
  CHECK(!tensors.get<std::vector<std::optional<Tensor>>>()[1].has_value());
  CHECK(Value(std::vector<Tensor>{ones({1})}).get<std::vector<std::optional<Tensor>>>().size() ==
        1);
  CHECK(Value(DimVector({3, 4})).toListRef()[1].toInt() == 4);
  CHECK(Value::list(Value::Items()).get<std::vector<Tensor>>().empty());
  CHECK_THROWS(Error, "read as a number", Value::list({Value("x")}).toIntVector());
  CHECK_THROWS(Error, "a value of type str was read as list of int", Value("x").toIntVector());
  CHECK_THROWS(Error, "was read as a Tensor", Value("x").get<Tensor>());
  CHECK_THROWS(Error, "was read as a list", Value(1).toListRef());
}

RL_TEST(tensors_within) {
  const Value nested =
      Value::tuple({Value(ones({1})), Value::list({Value(ones({1})), Value(3)}),
                    Value(std::vector<std::optional<Tensor>>{std::nullopt, ones({1})})});
  int defined = 0;
  int undefined = 0;
  nested.for_each_tensor([&](const Tensor& t) { (t.defined() ? defined : undefined)++; });
  CHECK(defined == 3 && undefined == 1);
}

RL_TEST(objects) {
  int alive = 0;
  {
    const ClassName name("__torch__.torch.classes.tests.Counter");
    const Value v = Value::object(make_intrusive<Counter>(alive), name);
    const Value w = v;  // NOLINT(performance-unnecessary-copy-initialization)
    CHECK(alive == 1 && v.object() == w.object());
    CHECK(v.class_name() == "__torch__.torch.classes.tests.Counter");
    CHECK(ClassName("__torch__.torch.classes.tests.Counter").number == name.number);
    CHECK_THROWS(Error, "the object is a __torch__", v.toCustomClass<ivalue::Tuple>());
    CHECK_THROWS(Error, "was read as an object", Value(1).object());
  }
  CHECK(alive == 0);
  CHECK_THROWS(Error, "not bound", ClassName(typeid(Counter)));
}

RL_TEST(types_of_programs) {
  using Nested = std::map<std::string, std::vector<std::tuple<int64_t, std::string>>>;
  const Nested nested = {{"a", {{1, "one"}, {2, "two"}}}, {"b", {}}};
  CHECK(Value(nested).to<Nested>() == nested);
  CHECK(TypeOf<Nested>::type().str() == "Dict(str, (int, str)[])");
  CHECK(Value(std::optional<std::vector<bool>>()).is_none());
  const std::vector<bool> bools = {true, false};
  CHECK(Value(bools).isBoolList());
  CHECK(!Value(std::vector<std::string>{"x"}).isIntList());
}

// Values that several threads copy and drop at once own what they should.
RL_TEST(threads) {
  int alive = 0;
  {
    const Value v = Value::object(make_intrusive<Counter>(alive), ClassName("tests.Counter"));
    const Value text("text");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
      threads.emplace_back([&] {
        for (int k = 0; k < 10000; k++) {
          std::vector<Value> copies = {v, text, v};
          copies[0] = copies[1];
        }
      });
    }
    for (std::thread& t : threads) {
      t.join();
    }
    CHECK(alive == 1 && v.object().use_count() == 2);
  }
  CHECK(alive == 0);
}

RL_TEST_MAIN()
