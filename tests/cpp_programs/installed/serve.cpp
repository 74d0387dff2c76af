// LeNet on one image by a file that torch.export has written (make_lenet.py), as a program that has
// no Python. It checks that the same image gives the same answer.
#include <cstdio>

#include <rushlight/exported.h>
#include <rushlight/ops.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s lenet.pt2\n", argv[0]);
    return 2;
  }
  const rushlight::exported::Program program = rushlight::exported::load(argv[1]);
  const rushlight::Tensor image = rushlight::linspace(0, 1, 28 * 28).view({1, 1, 28, 28});
  const rushlight::Tensor first = program.run({image}).toTensor();
  const rushlight::Tensor again = program.run({image}).toTensor();
  std::printf("%d\n", static_cast<int>(first.argmax(1).item<int64_t>()));
  return first.size(1) == 10 && first.isfinite().all().item<bool>() && equal(first, again) ? 0 : 1;
}
