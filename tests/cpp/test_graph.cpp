// Graphs: built by hand, printed, checked, copied.
#include <rushlight/graph_function.h>
#include <rushlight/libtorch.h>

#include "check.h"

using namespace rushlight;

namespace {

RL_TEST(types) {
  const char* both[][2] = {
      {"int[]", "List[int]"},
      {"Tensor?", "Optional[Tensor]"},
      {"Dict(str, Tensor[])", "Dict[str, List[Tensor]]"},
      {"(int, Tensor?)", "Tuple[int, Optional[Tensor]]"},
      {"Future(Tensor)", "Future[Tensor]"},
      {"NoneType", "NoneType"},
      {"()", "Tuple[()]"},
  };
  for (const auto& [graph_text, program_text] : both) {
    CHECK(parse_type(graph_text) == parse_type(program_text));
    CHECK(parse_type(program_text).str() == graph_text);
    CHECK(parse_type(graph_text).annotation() == program_text);
  }
  const auto is_part = [](const char* a, const char* b) {
    return parse_type(a).is_subtype_of(parse_type(b));
  };
  CHECK(is_part("int", "Optional[int]"));
  CHECK(is_part("NoneType", "Optional[int]"));
  CHECK(!is_part("Optional[int]", "int"));
  CHECK(is_part("int", "Scalar"));
  CHECK(!is_part("List[int]", "List[Optional[int]]"));
  CHECK(is_part("Tuple[int, Tensor]", "Tuple[Optional[int], Tensor]"));
  CHECK(is_part("Union[int, str]", "Union[str, int, Tensor]"));
  CHECK(parse_type("Union[int, NoneType]").str() == "int?");
  CHECK_THROWS(Error, "character", parse_type("List[int"));
  CHECK_THROWS(Error, "no type", parse_type("Nothing"));

  TypeVariables variables;
  CHECK(match(parse_type("Dict(t, x[])"), parse_type("Dict[str, List[int]]"), variables));
  CHECK(substitute(parse_type("(t, x)[]"), variables).str() == "(str, int)[]");
  CHECK(!match(parse_type("t"), parse_type("int"), variables));
}

RL_TEST(schemas) {
  for (const char* const text : {"aten::len.t(t[] a) -> int", "aten::format(str self, ...) -> str",
                                 "aten::sort.int(int[](!) self, bool reverse=False) -> ()",
                                 "aten::divmod.int(int x, int y) -> (int, int)"}) {
    CHECK(graph::parse_schema(text).str() == text);
  }
  CHECK(graph::schema_of(*find_op("add", "Tensor")).str() ==
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
}

// y = x + x where x.size(0) > 1, else x * 2, as a program would be lowered.
std::unique_ptr<graph::Graph> graph_with_branch() {
  auto made = std::make_unique<graph::Graph>();
  graph::Value* const x = made->add_input({Type::Kind::Tensor}, "x.1");
  graph::Value* const flag = made->add_input({Type::Kind::Bool}, "flag.1");
  graph::Value* const one = made->constant(1);
  graph::Node* const branch = made->append(graph::Kind::If, {flag});
  {
    const graph::InsertPoint inside(*made, *branch->add_block());
    branch->block(0).add_return(made->append("aten::add.Tensor", {x, x, one}));
  }
  {
    const graph::InsertPoint inside(*made, *branch->add_block());
    graph::Value* const two = made->constant(2.5);
    branch->block(1).add_return(made->append("aten::mul.Scalar", {x, two}));
  }
  made->add_output(branch->output());
  return made;
}

RL_TEST(printing) {
  const std::unique_ptr<graph::Graph> made = graph_with_branch();
  made->verify();
  const std::string text =
      "graph(%x.1 : Tensor,\n"
      "      %flag.1 : bool):\n"
      "  %2 : int = prim::Constant[value=1]()\n"
      "  %3 : Tensor = prim::If(%flag.1)\n"
      "    block0():\n"
      "      %4 : Tensor = aten::add(%x.1, %x.1, %2)\n"
      "      -> (%4)\n"
      "    block1():\n"
      "      %5 : float = prim::Constant[value=2.5]()\n"
      "      %6 : Tensor = aten::mul(%x.1, %5)\n"
      "      -> (%6)\n"
      "  return (%3)\n";
  CHECK(made->str() == text);
  const std::unique_ptr<graph::Graph> copy = made->clone();
  copy->verify();
  CHECK(copy->str() == text);
}

RL_TEST(ranges) {
  auto source = std::make_shared<graph::Source>(
      graph::Source{"def f(x):\n    y = x + 1\n    return y\n", "net.py", 10});
  const graph::SourceRange range{source, 18, 23};
  CHECK(range.place() == "net.py:11:8");
  CHECK(range.excerpt() ==
        "  File \"net.py\", line 11\ndef f(x):\n    y = x + 1\n        ~~~~~ <--- HERE\n"
        "    return y\n");
}

RL_TEST(uses) {
  graph::Graph made;
  graph::Value* const x = made.add_input({Type::Kind::Tensor}, "x");
  graph::Value* const again = made.add_input({Type::Kind::Tensor}, "x");
  CHECK(again->name() == "x.1");
  graph::Node* const list = made.append(graph::Kind::ListConstruct, {x, x, again});
  list->output()->set_type(Type::list({Type::Kind::Tensor}));
  list->remove_input(0);
  CHECK(x->uses().size() == 1 && x->uses()[0].place == 0 && again->uses()[0].place == 1);
  list->insert_input(0, again);
  made.verify();
  CHECK(again->uses().size() == 2);
  again->replace_all_uses(x);
  CHECK(!again->is_used() && x->uses().size() == 3);
  CHECK_THROWS(Error, "is used", x->node()->remove_output(0));
  made.add_output(list->output());
  CHECK_THROWS(Error, "is used", list->erase());
  made.verify();

  // A value out of sight.
  graph::Node* const branch = made.append(graph::Kind::If, {made.constant(true)}, 0);
  branch->add_block();
  graph::Value* inner = nullptr;
  {
    const graph::InsertPoint inside(made, *branch->add_block());
    inner = made.append("aten::relu", {x});
  }
  made.verify();
  made.add_output(inner);
  CHECK_THROWS(Error, "out of sight", made.verify());
  made.block().return_node()->remove_input(1);
  CHECK_THROWS(Error, "takes 1", made.append("aten::relu", {x, x}));
  CHECK_THROWS(Error, "no op", made.append("aten::nothing", {x}));
  branch->erase();
  list->move_before(list->next());
  made.verify();
}

}  // namespace

RL_TEST_MAIN()
