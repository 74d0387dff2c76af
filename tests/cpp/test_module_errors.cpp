// Errors that leave the forward of a module say which part of the outermost module was running.
#include <torch/torch.h>

#include <string>

#include "check.h"

namespace {

namespace nn = torch::nn;

struct BlockImpl : nn::Module {
  BlockImpl() {
    fc = register_module("fc", nn::Linear(4, 4));
    list->push_back(nn::Linear(4, 4));
    list->push_back(nn::Linear(5, 4));
    register_module("list", list);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = fc(x);
    for (const auto& m : *list) {
      x = m->as<nn::Linear>()->forward(x);
    }
    return x;
  }
  nn::Linear fc = nullptr;
  nn::ModuleList list;
};
TORCH_MODULE(Block);

struct NetImpl : nn::Module {
  NetImpl() {
    body = register_module("body", nn::Sequential(nn::Linear(3, 4), nn::ReLU(), Block()));
    head = register_module("head", nn::Linear(7, 1));
  }
  torch::Tensor forward(torch::Tensor x) { return head(body->forward(x)); }
  nn::Sequential body = nullptr;
  nn::Linear head = nullptr;
};
TORCH_MODULE(Net);

template <class F>
std::string said(const F& f) {
  try {
    f();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "";
}
bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

RL_TEST(the_path_is_named) {
  Net net;
  const torch::Tensor x = torch::ones({2, 5});
  std::string text = said([&] { net(x); });
  CHECK(text.find("cannot be multiplied (2x5 and 3x4)") != std::string::npos);
  CHECK(ends_with(text, "\nin the forward pass of Net: body.0 (Linear)"));
  // Without the holder of the outermost one the name by which it was registered.
  CHECK(ends_with(said([&] { net->forward(x); }), "\nin the forward pass of 0 (Linear)"));
  CHECK(ends_with(said([&] { net->head(x); }), "\nin the forward pass of head (Linear)"));
  // A part that is called without its holder: the innermost that was called by one.
  text = said([&] { net(torch::ones({2, 3})); });
  CHECK(ends_with(text, "\nin the forward pass of Net: body.2 (Block)"));
  CHECK(ends_with(said([] { nn::Linear(2, 3)(torch::ones({2, 5})); }),
                  "\nin the forward pass of Linear"));
}

RL_TEST(each_error_is_named_once) {
  Net net;
  const torch::Tensor x = torch::ones({2, 5});
  const std::string first = said([&] { net(x); });
  CHECK(said([&] { net(x); }) == first);
  CHECK(first.find("in the forward pass") == first.rfind("in the forward pass"));
  net->body->push_back(Net());
  CHECK(ends_with(said([&] { net->body->forward(torch::ones({2, 3})); }),
                  "\nin the forward pass of 2 (Block)"));
}

RL_TEST(the_class_of_the_error_stays) {
  struct FailingImpl : nn::Module {
    torch::Tensor forward(torch::Tensor x) {
      TORCH_CHECK_INDEX(false, "no such place");
      return x;
    }
  };
  nn::ModuleHolder<FailingImpl> failing;
  nn::AnyModule any(failing.ptr());
  bool caught = false;
  try {
    any.forward(torch::ones({1}));
  } catch (const c10::IndexError& error) {
    caught = ends_with(error.what(), "no such place\nin the forward pass of Failing");
  }
  CHECK(caught);
}

RL_TEST_MAIN()
