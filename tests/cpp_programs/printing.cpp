// Prints modules, their parameters' names and sizes. tests/parity/test_cpp_printing.py compiles it
// with libtorch, too, and compares the texts.
#include <torch/torch.h>

#include <iostream>

using namespace torch::nn;  // NOLINT: names of modules alone

namespace {

template <class M>
void show(const M& module) {
  std::cout << module << '\n';
  for (const auto& item : module->named_parameters()) {
    std::cout << "  " << item.key();
    for (const int64_t n : item.value().sizes()) {
      std::cout << ' ' << n;
    }
    std::cout << '\n';
  }
  for (const auto& item : module->named_buffers()) {
    std::cout << "  " << item.key() << '\n';
  }
}

template <class... M>
void show_all(const M&... modules) {
  (show(modules), ...);
}

struct NetImpl : Module {
  NetImpl() {
    first = register_module("first", Linear(2, 3));
    list = register_module("list", ModuleList(ReLU(), Sequential(Linear(3, 3), Tanh())));
  }
  Linear first = nullptr;
  ModuleList list = nullptr;
};
TORCH_MODULE(Net);

}  // namespace

int main() {
  show_all(Linear(2, 3), Linear(LinearOptions(2, 3).bias(false)), Bilinear(1, 2, 3), Identity(),
           Flatten(), Flatten(FlattenOptions().start_dim(0).end_dim(2)),
           Unflatten(UnflattenOptions(1, {2, 3})));
  show_all(Conv1d(1, 2, 3), Conv2d(Conv2dOptions(2, 4, {3, 5}).stride(2).padding({1, 0})),
           Conv2d(Conv2dOptions(2, 4, 3).groups(2).bias(false).dilation(2)),
           Conv2d(Conv2dOptions(2, 4, 3).padding(1).padding_mode(torch::kReflect)), Conv3d(1, 2, 3),
           ConvTranspose1d(ConvTranspose1dOptions(2, 4, 3).stride(2)),
           ConvTranspose2d(ConvTranspose2dOptions(1, 2, 3).stride(2).output_padding(1).padding(1)),
           ConvTranspose3d(1, 2, 3));
  show_all(BatchNorm1d(2), BatchNorm2d(BatchNorm2dOptions(3).affine(false)), BatchNorm3d(2),
           InstanceNorm1d(2), InstanceNorm2d(InstanceNorm2dOptions(2).affine(true)),
           InstanceNorm3d(2), LayerNorm(LayerNormOptions({2, 3})), GroupNorm(2, 4),
           LocalResponseNorm(2), CrossMapLRN2d(3));
  show_all(Embedding(5, 3), Embedding(EmbeddingOptions(5, 3).padding_idx(1).max_norm(2)),
           EmbeddingBag(5, 3), EmbeddingBag(EmbeddingBagOptions(5, 3).mode(torch::kSum)));
  show_all(RNN(RNNOptions(2, 3).num_layers(2)), LSTM(LSTMOptions(2, 3).proj_size(2)),
           GRU(GRUOptions(2, 3).bidirectional(true)), RNNCell(2, 3), LSTMCell(2, 3),
           GRUCell(GRUCellOptions(2, 3).bias(false)));
  show_all(Dropout(), Dropout2d(0.3), Dropout3d(), AlphaDropout(), FeatureAlphaDropout());
  show_all(ReLU(), ReLU(true), ReLU6(), LeakyReLU(LeakyReLUOptions().negative_slope(0.2)), ELU(),
           CELU(), SELU(), SiLU(), Mish(), GELU(), GLU(), RReLU(), PReLU(), Hardtanh(),
           Hardshrink(), Softshrink(), Softplus(), Softsign(), Tanhshrink(), Threshold(1, 2),
           Sigmoid(), Tanh(), LogSigmoid(), Softmax(1), Softmax2d(), Softmin(1), LogSoftmax(1));
  show_all(MaxPool1d(2), MaxPool2d(MaxPool2dOptions({2, 3}).padding(1)), MaxPool3d(2), AvgPool1d(2),
           AvgPool2d(AvgPool2dOptions(3).stride(2)), AvgPool3d(2), AdaptiveAvgPool1d(2),
           AdaptiveAvgPool2d(3), AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({3, 5})),
           AdaptiveAvgPool3d(2), AdaptiveMaxPool1d(2), AdaptiveMaxPool2d(3), AdaptiveMaxPool3d(2),
           LPPool1d(LPPool1dOptions(2, 3)), LPPool2d(LPPool2dOptions(2, 3)),
           LPPool3d(LPPool3dOptions(2, 3)), MaxUnpool1d(2),
           MaxUnpool2d(MaxUnpool2dOptions(3).padding(1)), MaxUnpool3d(2),
           FractionalMaxPool2d(FractionalMaxPool2dOptions(3).output_size(2)),
           FractionalMaxPool3d(FractionalMaxPool3dOptions(3).output_size(2)));
  show_all(ReflectionPad1d(1), ReflectionPad2d(1), ReflectionPad3d(1), ReplicationPad1d(2),
           ReplicationPad2d(1), ReplicationPad3d(1), ZeroPad1d(1), ZeroPad2d(1), ZeroPad3d(1),
           ConstantPad1d(2, 3.5), ConstantPad2d(1, 0.5), ConstantPad3d(1, 0.5));
  show_all(Fold(FoldOptions({3, 2}, {2, 2})), Unfold(UnfoldOptions(3)), PixelShuffle(2),
           PixelUnshuffle(2), Upsample(UpsampleOptions().scale_factor(std::vector<double>({2}))),
           Upsample(UpsampleOptions().size(std::vector<int64_t>({2, 3})).mode(torch::kBilinear)));
  show_all(CosineSimilarity(), PairwiseDistance(), L1Loss(), MSELoss(), SmoothL1Loss(), HuberLoss(),
           NLLLoss(), CrossEntropyLoss(), BCELoss(), BCEWithLogitsLoss(), KLDivLoss(),
           PoissonNLLLoss(), HingeEmbeddingLoss(), SoftMarginLoss(), MarginRankingLoss(),
           CosineEmbeddingLoss(), TripletMarginLoss(), TripletMarginWithDistanceLoss(),
           MultiMarginLoss(), MultiLabelMarginLoss(), MultiLabelSoftMarginLoss(), CTCLoss(),
           AdaptiveLogSoftmaxWithLoss(AdaptiveLogSoftmaxWithLossOptions(8, 10, {4})));
  show_all(MultiheadAttention(4, 2),
           MultiheadAttention(MultiheadAttentionOptions(4, 2).kdim(3).vdim(2).add_bias_kv(true)),
           TransformerEncoderLayer(4, 2), TransformerEncoder(TransformerEncoderLayer(4, 2), 2));
  show_all(Sequential(Conv2d(1, 2, 3), ReLU()), ModuleList(Linear(2, 3)), ParameterList(),
           ParameterDict(), ModuleDict(), Net(), Functional(torch::relu));
  return 0;
}
