// What graphs call: ops and functions of the language by one kind of schema, and functions that are
// graphs themselves.
#pragma once

#include <atomic>

#include <rushlight/graph.h>

namespace rushlight {
class FunctionSchema;  // operator_handle.h
}  // namespace rushlight

namespace rushlight::graph {

struct Argument {
  std::string name;
  Type type;
  std::optional<IValue> fallback = {};  // nothing: it must be passed
  bool keyword_only = false;
  uint8_t size = 0;  // of int[2], where one int stands for equal ones; 0: none does
  bool written = false;
  char alias = 0;  // 'a' of Tensor(a) and Tensor(a!); 0: shares no memory

  RL_API std::string default_text() const;  // empty where it must be passed
};
struct RL_API Schema {
  std::string space;     // "aten"
  std::string name;      // "add"
  std::string overload;  // "Tensor", or ""
  std::vector<Argument> arguments;
  std::vector<Argument> results;
  bool variadic = false;  // takes any further arguments: aten::format(str self, ...)

  std::string qualified_name() const { return space.empty() ? name : space + "::" + name; }
  std::string str() const;  // "aten::len.t(t[] a) -> int"
};
// Reads "aten::len.t(t[] a) -> int"; RuntimeError says where the text is wrong.
RL_API Schema parse_schema(std::string_view text, const TypeNames* names = nullptr);
RL_API const Schema& schema_of(const OpInfo& op);  // made once

// "prim::If" … of control flow; nothing where it is none.
RL_API std::optional<Kind> control_named(std::string_view name);

// The integers that dtypes, layouts and memory formats are in programs, which PyTorch's files have;
// RuntimeError of one that stands for none here.
RL_API int64_t number_of(ScalarType dtype);
RL_API int64_t number_of(Layout layout);
RL_API ScalarType dtype_of_number(int64_t number);
RL_API Layout layout_of_number(int64_t number);
RL_API MemoryFormat memory_format_of_number(int64_t number);

// ---- functions of the language ----

// Takes its arguments, whose memory it may move from, and puts its results.
using BuiltinCall = void (*)(IValue* arguments, size_t count, IValue* results);
// Where the functions of the language print; stdout until it is set.
using PrintLine = void (*)(const std::string& line);
RL_API void set_printer(PrintLine printer);

struct Builtin {
  Schema schema;
  BuiltinCall call;
  bool pure;  // writes to no list or dict, prints nothing
};
// All overloads of "aten::len" in order of preference; empty where there are none.
RL_API ArrayRef<const Builtin*> find_builtins(std::string_view qualified_name);
// "aten::len.t"; null where there is none.
RL_API const Builtin* find_builtin(std::string_view full_name);
RL_API ArrayRef<const Builtin*> all_builtins();

// ---- functions that are graphs ----

class Program;  // what a graph is compiled to (executor.h)

class RL_API Function {
 public:
  Function(std::string name, Schema schema, std::unique_ptr<Graph> graph = nullptr);
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;
  ~Function();

  const std::string& name() const { return name_; }  // "__torch__.models.Net.forward"
  std::string base_name() const { return name_.substr(name_.rfind('.') + 1); }
  Schema schema;
  const FunctionSchema getSchema() const;
  size_t num_inputs() const { return schema.arguments.size(); }
  // The graph, made when it is first asked for; RuntimeError of an interface's method.
  Graph& graph() { return *shared_graph(); }
  std::shared_ptr<Graph> shared_graph();
  bool has_graph() const { return graph_ != nullptr; }
  // A function that is no graph but code of the host, such as Python; it cannot be saved.
  struct RL_API Native {
    virtual ~Native();
    virtual std::vector<IValue> operator()(std::vector<IValue> arguments) = 0;
  };
  void set_native(std::unique_ptr<Native> native) { native_ = std::move(native); }
  Native* native() const { return native_.get(); }  // null of a graph
  void set_graph(std::unique_ptr<Graph> graph);     // RuntimeError once it has run
  // Says how to make the graph later; `make` is called once, by one thread.
  template <class F>
  void set_maker(F make) {
    struct As : Making {
      explicit As(F f) : make(std::move(f)) {}
      std::unique_ptr<Graph> operator()() override { return make(); }
      F make;
    };
    maker_ = std::make_unique<As>(std::move(make));
  }
  // Any number of threads may run it. The graph is optimised and compiled once, and may not change
  // behind that.
  const Program& program();
  // One argument for each input of the graph; the results.
  std::vector<IValue> run(std::vector<IValue> arguments);
  // Fills in names and defaults by the schema first: RuntimeError where an argument is missing, is
  // there twice, unknown, or of another type. The result; a tuple of several.
  IValue operator()(std::vector<IValue> arguments,
                    std::vector<std::pair<std::string, IValue>> by_name = {});

 private:
  struct RL_API Making {
    virtual ~Making();
    virtual std::unique_ptr<Graph> operator()() = 0;
  };
  std::string name_;
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<Making> maker_;
  std::unique_ptr<Native> native_;
  std::unique_ptr<const Program> program_;
  std::atomic<const Program*> compiled_ = nullptr;
};

// Owns classes and functions that may name each other; lives as long as anything that it made.
class RL_API CompilationUnit : public std::enable_shared_from_this<CompilationUnit>,
                               public TypeNames {
 public:
  // Finds what it does not have itself in another unit, if there is one.
  explicit CompilationUnit(std::shared_ptr<const CompilationUnit> outer = nullptr);
  CompilationUnit(const CompilationUnit&) = delete;
  CompilationUnit& operator=(const CompilationUnit&) = delete;
  ~CompilationUnit() override;
  // RuntimeError where the unit has a class or function of that name.
  ClassType& add_class(ClassType::Form form, std::string name);
  Function& add_function(std::string name, Schema schema, std::unique_ptr<Graph> graph = nullptr);
  Function& add_method(ClassType& of, std::string_view base_name, Schema schema,
                       std::unique_ptr<Graph> graph = nullptr);
  ClassType* find_class(std::string_view name) const;  // null where there is none
  Function* find_function(std::string_view name) const;
  std::optional<Type> find(std::string_view name) const override;
  intrusive_ptr<Object> create(ClassType& type);
  // Another unit, whose functions are called by those of this one, or whose classes are types here,
  // lives as long as this one.
  void keep(std::shared_ptr<const void> unit);
  const std::vector<std::unique_ptr<ClassType>>& classes() const { return classes_; }
  const std::vector<std::unique_ptr<Function>>& functions() const { return functions_; }

 private:
  std::vector<std::unique_ptr<ClassType>> classes_;
  std::vector<std::unique_ptr<Function>> functions_;
  std::unordered_map<std::string, ClassType*> class_of_;
  std::unordered_map<std::string, Function*> function_of_;
  std::shared_ptr<const CompilationUnit> outer_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace rushlight::graph
