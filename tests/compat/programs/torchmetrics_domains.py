"""Images, audio, text, retrieval, segmentation, clustering, detection without networks."""
# packages: torchmetrics

import torch
import torchmetrics.functional as F
from shown import show
from torchmetrics import audio, clustering, image, nominal, retrieval, segmentation, text

torch.manual_seed(0)
a, b = torch.rand(2, 3, 48, 48), torch.rand(2, 3, 48, 48)
show("ssim", image.StructuralSimilarityIndexMeasure(data_range=1.0)(a, b))
show("psnr", image.PeakSignalNoiseRatio(data_range=1.0)(a, b))
show("uqi", image.UniversalImageQualityIndex()(a, b))
show("tv", image.TotalVariation()(a))
show("sam", image.SpectralAngleMapper()(a, b))
show("ergas", image.ErrorRelativeGlobalDimensionlessSynthesis()(a, b))
show("vif", F.image.visual_information_fidelity(a, b))
s, n = torch.randn(2, 800), torch.randn(2, 800)
show("snr", audio.SignalNoiseRatio()(s, n))
show("sisdr", audio.ScaleInvariantSignalDistortionRatio()(s, n))
show(
    "pit",
    F.audio.permutation_invariant_training(
        s[None], n[None], F.audio.scale_invariant_signal_noise_ratio
    )[0],
)
said, meant = ["the cat sat on a mat", "hello there"], ["the cat sat on the mat", "hello here"]
show("bleu", text.BLEUScore(n_gram=2)(said, [[m] for m in meant]))
show("wer", text.WordErrorRate()(said, meant))
show("cer", text.CharErrorRate()(said, meant))
show("chrf", text.CHRFScore()(said, [[m] for m in meant]))
show("perplexity", text.Perplexity()(torch.randn(2, 8, 5), torch.randint(5, (2, 8))))
index = torch.tensor([0, 0, 0, 1, 1, 1])
score, hit = torch.rand(6), torch.tensor([True, False, True, False, True, False])
show("map", retrieval.RetrievalMAP()(score, hit, indexes=index))
show("ndcg", retrieval.RetrievalNormalizedDCG()(score, hit, indexes=index))
show("mrr", retrieval.RetrievalMRR()(score, hit, indexes=index))
p, t = torch.randint(2, (2, 3, 16, 16)), torch.randint(2, (2, 3, 16, 16))
show("miou", segmentation.MeanIoU(num_classes=3)(p, t))
show("dice", segmentation.GeneralizedDiceScore(num_classes=3)(p, t))
c, d = torch.randint(4, (60,)), torch.randint(4, (60,))
show("rand", clustering.AdjustedRandScore()(c, d))
show("mutual", clustering.NormalizedMutualInfoScore()(c, d))
show("cramers", nominal.CramersV(num_classes=4)(c, d))
show("cosine", F.pairwise_cosine_similarity(s[:, :20]))
show("euclidean", F.pairwise_euclidean_distance(s[:, :20], n[:, :20]))
