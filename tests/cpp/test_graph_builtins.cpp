// The language's functions: by overload, with Python's semantics where PyTorch has them.
#include <limits>

#include <rushlight/executor.h>
#include <rushlight/rushlight.h>

#include "check.h"
#include "graph/values.h"

using namespace rushlight;

namespace {

// Calls a function as graphs do, through a graph of one node.
std::vector<IValue> results_of(const char* name, std::vector<IValue> arguments) {
  const graph::Builtin* const builtin = graph::find_builtin(name);
  RL_CHECK(builtin != nullptr, "no function ", name);
  graph::Graph made;
  std::vector<graph::Value*> inputs;
  for (IValue& argument : arguments) {
    inputs.push_back(made.add_input(type_of(argument)));
    argument = graph::shared_list(std::move(argument));
  }
  graph::Node* const node = made.insert(made.create(*builtin, inputs));
  for (graph::Value* const output : node->outputs()) {
    made.add_output(output);
  }
  made.verify();
  return graph::Program(made, "f").run(arguments);
}
IValue call(const char* name, std::vector<IValue> arguments) {
  return results_of(name, std::move(arguments)).at(0);
}
int64_t int_of(const char* name, std::vector<IValue> arguments) {
  return call(name, std::move(arguments)).toInt();
}
double float_of(const char* name, std::vector<IValue> arguments) {
  const IValue out = call(name, std::move(arguments));
  RL_CHECK(out.isDouble(), name, " gave no float");
  return out.toDouble();
}
bool bool_of(const char* name, std::vector<IValue> arguments) {
  const IValue out = call(name, std::move(arguments));
  RL_CHECK(out.isBool(), name, " gave no bool");
  return out.toBool();
}
std::string text_of(const char* name, std::vector<IValue> arguments) {
  return call(name, std::move(arguments)).toStringRef();
}
// As str() says it.
std::string shown(IValue value) { return text_of("aten::str", {std::move(value)}); }

IValue ints(std::vector<int64_t> list) { return IValue(list); }

RL_TEST(arithmetic) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  CHECK(int_of("aten::add.int", {2, 3}) == 5);
  CHECK(int_of("aten::floordiv.int", {-7, 2}) == -4);
  CHECK(int_of("aten::remainder.int", {-7, 2}) == 1);
  CHECK(int_of("aten::remainder.int", {7, -2}) == -1);
  CHECK(int_of("aten::floordiv.int", {least, -1}) == least);
  CHECK(int_of("aten::remainder.int", {least, -1}) == 0);
  CHECK(float_of("aten::div.int", {1, 2}) == 0.5);
  CHECK(float_of("aten::div.int", {1, 0}) == std::numeric_limits<double>::infinity());
  CHECK(float_of("aten::floordiv.float", {-7.5, 2.0}) == -4);
  CHECK(float_of("aten::remainder.float", {7.5, -2.0}) == -0.5);
  CHECK(float_of("aten::add.int_float", {1, 0.5}) == 1.5);
  CHECK(float_of("aten::pow.int", {2, -3}) == 0.125);
  CHECK(int_of("aten::pow.int_to_int", {3, 4}) == 81);
  CHECK_THROWS(Error, "division by 0", call("aten::floordiv.int", {1, 0}));
  CHECK_THROWS(Error, "division by 0", call("aten::remainder.int", {1, 0}));
  CHECK(shown(IValue::tuple(results_of("aten::divmod.int", {-7, 2}))) == "(-4, 1)");
  CHECK(shown(IValue::tuple(results_of("aten::divmod.float", {7.5, -2.0}))) == "(-4., -0.5)");
  CHECK(shown(call("aten::mul.complex_int", {Scalar(complex<double>(1, 2)), 2})) == "2.+4.j");
  CHECK(float_of("prim::abs.complex", {Scalar(complex<double>(3, 4))}) == 5);
  CHECK(int_of("prim::max.int", {2, 3}) == 3 && float_of("prim::min.int_float", {2, 3.5}) == 2);
  CHECK(int_of("aten::__range_length", {0, 10, 3}) == 4);
  CHECK(int_of("aten::__range_length", {10, 0, -3}) == 4);
  CHECK(int_of("aten::__range_length", {5, 0, 1}) == 0);
  CHECK_THROWS(Error, "must not be zero", call("aten::__range_length", {0, 1, 0}));
  CHECK(int_of("aten::__derive_index", {2, 10, -3}) == 4);
  CHECK(int_of("aten::__lshift__.int", {1, 70}) == 0 &&
        int_of("aten::__rshift__.int", {-5, 70}) == -1);
}

RL_TEST(comparisons_and_conversions) {
  CHECK(bool_of("aten::lt.int_float", {1, 1.5}) && !bool_of("aten::gt.int", {1, 1}));
  CHECK(bool_of("aten::ge.int", {1, 1}) && bool_of("aten::eq.float_int", {1.0, 1}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(!bool_of("aten::le.float", {nan, 1.0}) && !bool_of("aten::ge.float", {nan, 1.0}));
  CHECK(bool_of("aten::lt.str", {"a", "b"}) && bool_of("aten::ne.str", {"a", "b"}));
  CHECK(bool_of("aten::__is__", {IValue(), IValue()}) && !bool_of("aten::__is__", {IValue(), 1}));
  CHECK(bool_of("aten::__isnot__", {1, IValue()}));
  CHECK(int_of("aten::Int.float", {-2.7}) == -2 && int_of("aten::Int.str", {"12"}) == 12);
  CHECK_THROWS(Error, "invalid literal", call("aten::Int.str", {" 12"}));
  CHECK_THROWS(Error, "outside", call("aten::Int.float", {1e30}));
  CHECK(float_of("aten::Float.str", {"1e3"}) == 1000);
  CHECK_THROWS(Error, "could not convert", call("aten::Float.str", {"1.5q"}));
  CHECK(int_of("aten::Int.Tensor", {full({1}, 3.7)}) == 3);
  CHECK_THROWS(Error, "2 elements", call("aten::Int.Tensor", {ones({2})}));
  CHECK(int_of("aten::ceil.float", {2.1}) == 3 && int_of("aten::floor.float", {-2.1}) == -3);
  CHECK(float_of("aten::round.float", {2.5}) == 2);
  CHECK(std::isnan(float_of("aten::sqrt.float", {-1.0})));
  CHECK(float_of("aten::log.int_int", {8, 2}) == 3);
  CHECK_THROWS(Error, "negative values", call("aten::factorial.int", {-1}));
  CHECK(int_of("aten::gcd.int", {12, -18}) == 6);
}

RL_TEST(lists) {
  const IValue list = graph::list_value({3, 1, 2});
  call("aten::append.t", {list, 5});
  results_of("aten::insert.t", {list, 0, 9});
  results_of("aten::insert.t", {list, -1, 8});
  results_of("aten::insert.t", {list, 100, 7});
  CHECK(shown(list) == "[9, 3, 1, 2, 8, 5, 7]");
  CHECK(int_of("aten::pop.t", {list, -1}) == 7 && int_of("aten::pop.t", {list, 0}) == 9);
  results_of("aten::sort.t", {list, true});
  CHECK(shown(list) == "[8, 5, 3, 2, 1]");
  results_of("aten::reverse.t", {list});
  results_of("aten::remove.t", {list, 5});
  results_of("aten::Delete.t", {list, 0});
  results_of("aten::extend.t", {list, list});
  CHECK(shown(list) == "[2, 3, 8, 2, 3, 8]");
  CHECK(int_of("aten::__getitem__.t", {list, -1}) == 8);
  CHECK_THROWS(Error, "list index out of range", call("aten::__getitem__.t", {list, 6}));
  CHECK_THROWS(Error, "list index out of range", call("aten::__getitem__.t", {list, -7}));
  CHECK_THROWS(Error, "pop from empty list", call("aten::pop.t", {ints({}), -1}));
  CHECK_THROWS(Error, "not in list", results_of("aten::remove.t", {list, 77}));
  CHECK(int_of("aten::index.list_t", {list, 8}) == 2 && int_of("aten::count.t", {list, 3}) == 2);
  CHECK(bool_of("aten::__contains__.t", {list, 3}) && !bool_of("aten::__contains__.t", {list, 4}));
  CHECK(shown(call("aten::slice.t", {ints({1, 2, 3, 4}), 1, 3, 1})) == "[2, 3]");
  CHECK(shown(call("aten::slice.t", {ints({1, 2, 3, 4}), IValue(), IValue(), -1})) ==
        "[4, 3, 2, 1]");
  CHECK(shown(call("aten::slice.t", {ints({1, 2, 3, 4}), -3, 100, 2})) == "[2, 4]");
  CHECK(shown(call("aten::slice.t", {ints({1, 2}), 0, 2, std::numeric_limits<int64_t>::max()})) ==
        "[1]");
  CHECK(shown(call("aten::add.t", {ints({1}), ints({2})})) == "[1, 2]");
  CHECK(shown(call("aten::mul.left_t", {ints({1, 2}), 2})) == "[1, 2, 1, 2]");
  CHECK_THROWS(Error, "too long", call("aten::mul.left_t", {ints({1}), int64_t{1} << 50}));
  CHECK(bool_of("aten::eq.list_t", {ints({1, 2}), ints({1, 2})}));
  CHECK(int_of("prim::max.self_int", {ints({1, 5, 2})}) == 5);
  CHECK_THROWS(Error, "empty sequence", call("prim::max.self_int", {ints({})}));
  CHECK(int_of("aten::sum.int", {ints({1, 5, 2})}) == 8);
  CHECK(bool_of("aten::any.int", {ints({0, 1})}) && !bool_of("aten::all.int", {ints({0, 1})}));
  CHECK(shown(call("aten::_infer_size", {ints({3, 1}), ints({2, 1, 4})})) == "[2, 3, 4]");
  CHECK_THROWS(Error, "must match", call("aten::_infer_size", {ints({3}), ints({2})}));
}

RL_TEST(dicts) {
  const IValue dict = graph::new_dict();
  results_of("aten::_set_item.Dict", {dict, "a", 1});
  results_of("aten::_set_item.Dict", {dict, "b", 2});
  results_of("aten::_set_item.Dict", {dict, "a", 3});
  CHECK(shown(dict) == "{a: 3, b: 2}");
  CHECK(int_of("aten::__getitem__.Dict", {dict, "a"}) == 3);
  CHECK_THROWS(Error, "KeyError: q", call("aten::__getitem__.Dict", {dict, "q"}));
  CHECK_THROWS(Error, "KeyError: q", call("aten::Delete.Dict", {dict, "q"}));
  CHECK(call("aten::get.Dict", {dict, "q"}).isNone());
  CHECK(int_of("aten::get.default_Dict", {dict, "q", 7}) == 7);
  CHECK(int_of("aten::setdefault.Dict", {dict, "c", 9}) == 9);
  CHECK(shown(call("aten::keys.Dict", {dict})) == "[a, b, c]");
  CHECK(shown(call("aten::items.Dict", {dict})) == "[(a, 3), (b, 2), (c, 9)]");
  CHECK(int_of("aten::pop.Dict", {dict, "a"}) == 3 && int_of("aten::len.Dict", {dict}) == 2);
  CHECK(shown(call("aten::popitem.Dict", {dict})) == "(b, 2)");
  const IValue copy = call("aten::copy.Dict", {dict});
  results_of("aten::clear.Dict", {dict});
  CHECK(shown(dict) == "{}" && shown(copy) == "{c: 9}");
  results_of("aten::update.Dict", {dict, copy});
  CHECK(bool_of("aten::__contains__.Dict", {dict, "c"}));
}

RL_TEST(strings) {
  CHECK(shown(1.0) == "1." && shown(0.1) == "0.10000000000000001" && shown(1e20) == "1e+20");
  CHECK(shown(IValue()) == "None" && shown(true) == "True");
  CHECK(shown(IValue::tuple({1})) == "(1,)");
  CHECK(text_of("aten::format", {"{} {} {0}", 1, "a"}) == "1 a {0}");
  CHECK_THROWS(Error, "Too few arguments", call("aten::format", {"{} {}", 1}));
  CHECK(text_of("aten::percentFormat", {"%d %s %f%%", 1, "a", 1.5}) == "1 a 1.500000%");
  CHECK_THROWS(Error, "Too many arguments", call("aten::percentFormat", {"%d", 1, 2}));
  CHECK_THROWS(Error, "not supported", call("aten::percentFormat", {"%x", 1}));
  CHECK(text_of("aten::__getitem__.str", {"abc", -1}) == "c");
  CHECK_THROWS(Error, "out of range", call("aten::__getitem__.str", {"abc", 5}));
  CHECK(text_of("aten::slice.str", {"abcdef", 1, 4, 1}) == "bcd");
  CHECK(shown(call("aten::split.str", {" a  b ", IValue(), -1})) == "[a, b]");
  CHECK(shown(call("aten::split.str", {"a,b,,c", ",", 1})) == "[a, b,,c]");
  CHECK_THROWS(Error, "empty separator", call("aten::split.str", {"a", "", -1}));
  CHECK(shown(call("aten::rsplit", {"a-b-c", "-", 1})) == "[a-b, c]");
  CHECK(shown(call("aten::splitlines", {"a\n\nb\r\n", false})) == "[a, , b]");
  CHECK(int_of("aten::find", {"abc", "c", 0, -1}) == 2 &&
        int_of("aten::find", {"abc", "c", 0, 2}) == -1);
  CHECK(int_of("aten::rfind", {"abcabc", "bc", 0, -1}) == 4);
  CHECK_THROWS(Error, "substring not found", call("aten::index.str", {"abc", "z", 0, -1}));
  CHECK(int_of("aten::count", {"abcabc", "bc", 0, -1}) == 2);
  CHECK(bool_of("aten::startswith", {"abc", "b", 1, -1}));
  CHECK(bool_of("aten::endswith", {"abc", "b", 0, 2}));
  CHECK(!bool_of("aten::startswith", {"abc", "b", 100, -1}));
  CHECK(text_of("aten::replace", {"aaa", "a", "b", 2}) == "bba");
  CHECK(text_of("aten::replace", {"ab", "", "-", -1}) == "-a-b-");
  CHECK(text_of("aten::center", {"abcd", 7, "*"}) == "**abcd*");
  CHECK(text_of("aten::center", {"abc", 6, "*"}) == "*abc**");
  CHECK(text_of("aten::zfill", {"42", 5}) == "00042");
  CHECK(text_of("aten::title", {"they are x-y"}) == "They Are X-Y");
  CHECK(text_of("aten::strip", {" a ", " \n"}) == "a" && text_of("aten::hex", {-255}) == "-0xff");
  CHECK(text_of("aten::join", {"x", graph::list_value({"a", "b"})}) == "axb");
  CHECK(shown(IValue::tuple(results_of("aten::partition", {"a-b-c", "-"}))) == "(a, -, b-c)");
  CHECK(!bool_of("aten::islower", {"1"}) && bool_of("aten::isdigit", {"12"}));
  CHECK(text_of("aten::expandtabs", {"a\tb", 8}) == "a       b");
  CHECK(int_of("aten::ord", {"a"}) == 97 && text_of("aten::chr", {97}) == "a");
}

RL_TEST(tensors) {
  const Tensor x = ones({2, 3});
  CHECK(shown(call("aten::size", {x})) == "[2, 3]" && int_of("aten::size.int", {x, -1}) == 3);
  CHECK(int_of("prim::dtype", {x}) == 6 && int_of("prim::layout", {x}) == 0);
  CHECK(call("prim::device", {x}).toDevice() == Device("cpu"));
  CHECK(int_of("aten::len.Tensor", {x}) == 2 && int_of("aten::dim", {x}) == 2);
  const IValue rows = graph::list_value({ints({1, 2}), ints({3, 4})});
  const Tensor made = call("aten::tensor", {rows, IValue(), IValue(), false}).toTensor();
  CHECK(made.dtype() == kInt64 && made.dim() == 2 && made.sum().item<int64_t>() == 10);
  CHECK(call("aten::tensor.float", {1.5, 3, IValue(), false}).toTensor().dtype() == kInt32);
  const IValue ragged = graph::list_value({ints({1, 2}), ints({3})});
  CHECK_THROWS(Error, "expected a list of 2",
               call("aten::tensor", {ragged, IValue(), IValue(), false}));
  CHECK(call("aten::to.prim_dtype", {x, 7, false, false}).toTensor().dtype() == kFloat64);
  CHECK(shown(call("prim::tolist", {made, 2, 0})) == "[[1, 2], [3, 4]]");
  CHECK_THROWS(Error, "null optional", call("aten::_unwrap_optional", {IValue()}));
  CHECK(call("aten::numpy_T", {x}).toTensor().size(0) == 3);
}

// Every row's schema reads and prints, and no two have one name.
RL_TEST(table) {
  size_t count = 0;
  for (const graph::Builtin* const builtin : graph::all_builtins()) {
    const graph::Schema& schema = builtin->schema;
    const std::string name =
        schema.qualified_name() + (schema.overload.empty() ? "" : "." + schema.overload);
    CHECK(graph::find_builtin(name) == builtin);
    CHECK(graph::parse_schema(schema.str()).str() == schema.str());
    count++;
  }
  std::printf("%zu functions\n", count);
  CHECK(count > 300);
}

}  // namespace

RL_TEST_MAIN()
