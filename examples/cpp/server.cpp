// Answers requests for a saved model from many threads, over HTTP (cpp-httplib):
//
//   build/digits digits.csv      trains and saves digits.pt
//   build/server digits.pt [PORT] [SECONDS]
//   build/server digits.pt2 [PORT] [SECONDS]    a program that Python has exported (./dev demo)
//   curl -d "0 0 5 13 9 1 …" localhost:8080/digit
//
// POST /digit takes the 64 pixels of an image, 0 to 16, and answers with the digit and how sure the
// network is; GET /picture.pgm is the image that came last. All threads share the one module, which
// inference does not change. It says each second how many requests were answered; with SECONDS it
// ends after so many.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <sstream>
#include <thread>

#include <torch/nativert/ModelRunner.h>
#include <torch/torch.h>

#include <httplib.h>

#include "net.h"
#include "picture.h"

namespace {

// The network of a file: a checkpoint of the one in net.h, or any program that was exported.
std::function<torch::Tensor(const torch::Tensor&)> network(const std::string& path) {
  if (path.size() > 4 && path.compare(path.size() - 4, 4, ".pt2") == 0) {
    const auto program = std::make_shared<torch::nativert::ModelRunner>(path, "model");
    return [program](const torch::Tensor& image) { return program->run({image}).toTensor(); };
  }
  Net net;
  torch::load(net, path);
  net->eval();
  return [net](const torch::Tensor& image) mutable { return net(image); };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s digits.pt [PORT] [SECONDS]\n", argv[0]);
    return 2;
  }
  const int port = argc > 2 ? std::atoi(argv[2]) : 8080;
  const int seconds = argc > 3 ? std::atoi(argv[3]) : 0;
  const auto net = network(argv[1]);
  torch::set_num_threads(1);  // requests are what runs side by side

  std::atomic<int64_t> answered{0};
  std::mutex mutex;
  torch::Tensor last = torch::zeros({1, 1, 8, 8});
  httplib::Server server;
  server.Post("/digit", [&](const httplib::Request& request, httplib::Response& response) {
    std::istringstream numbers(request.body);
    const std::vector<float> pixels(std::istream_iterator<float>(numbers), {});
    if (pixels.size() != 64) {
      response.status = 400;
      response.set_content("expected 64 numbers\n", "text/plain");
      return;
    }
    const torch::InferenceMode inference;
    const torch::Tensor image = torch::tensor(pixels).view({1, 1, 8, 8}) / 16;
    const torch::Tensor sure = torch::softmax(net(image), 1);
    const int64_t digit = sure.argmax(1).item<int64_t>();
    response.set_content(
        std::to_string(digit) + " " + std::to_string(sure[0][digit].item<float>()) + "\n",
        "text/plain");
    answered++;
    const std::lock_guard<std::mutex> lock(mutex);
    last = image;
  });
  server.Get("/picture.pgm", [&](const httplib::Request&, httplib::Response& response) {
    const std::lock_guard<std::mutex> lock(mutex);
    write_grid("request.pgm", last, 1, 16);
    std::ifstream file("request.pgm", std::ios::binary);
    response.set_content(std::string(std::istreambuf_iterator<char>(file), {}),
                         "image/x-portable-graymap");
  });
  std::atomic<bool> over{false};
  std::thread progress([&] {
    for (int i = 0; !over && (seconds == 0 || i < seconds); i++) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      std::printf("\r%lld requests answered ", static_cast<long long>(answered.load()));
      std::fflush(stdout);
    }
    server.stop();
  });
  std::printf("http://localhost:%d/digit\n", port);
  const bool listened = server.listen("127.0.0.1", port);
  over = true;
  progress.join();
  std::printf("\n");
  return listened || seconds > 0 ? 0 : 1;
}
