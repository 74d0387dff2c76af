// LeNet on one image, as a program that only infers: what it gives for saved weights, if a file of
// them is named, else for fresh ones. It checks that the same image gives the same answer.
#include <torch/torch.h>

namespace nn = torch::nn;

struct LeNetImpl : nn::Module {
  LeNetImpl()
      : conv1(nn::Conv2dOptions(1, 6, 5).padding(2)),
        conv2(nn::Conv2dOptions(6, 16, 5)),
        fc1(400, 120),
        fc2(120, 84),
        fc3(84, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_module("fc3", fc3);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc3(torch::relu(fc2(torch::relu(fc1(x.flatten(1))))));
  }
  nn::Conv2d conv1, conv2;
  nn::Linear fc1, fc2, fc3;
};
TORCH_MODULE(LeNet);

int main(int argc, char** argv) {
  const torch::NoGradGuard no_grad;
  LeNet net;
  if (argc > 1) {
    torch::load(net, argv[1]);
  }
  net->eval();
  const torch::Tensor image = torch::linspace(0, 1, 28 * 28).view({1, 1, 28, 28});
  const torch::Tensor first = net(image);
  const torch::Tensor again = net(image);
  std::printf("%d\n", static_cast<int>(first.argmax(1).item<int64_t>()));
  return first.size(1) == 10 && first.isfinite().all().item<bool>() && torch::equal(first, again)
             ? 0
             : 1;
}
