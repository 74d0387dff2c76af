"""One model of each family: forward, backward, features."""
# packages: timm torchvision
# cases: resnet18 resnetv2_50 efficientnet_b0 mobilenetv3_small_050 vit_tiny_patch16_224 deit_tiny_patch16_224 swin_tiny_patch4_window7_224 convnext_atto densenet121 regnetx_002 mixer_s32_224 levit_128s poolformer_s12 ghostnet_050 rexnet_100 dla34 hrnet_w18_small inception_v3 vgg11 xception41 cait_xxs24_224 beit_base_patch16_224 coat_tiny crossvit_tiny_240 edgenext_xx_small maxvit_tiny_tf_224 mobilevit_xxs nfnet_l0 pit_ti_224 repvgg_a0 twins_pcpvt_small visformer_tiny volo_d1_224 xcit_nano_12_p16_224 tinynet_e gernet_s selecsls42b skresnet18 res2net50_26w_4s dpn68 eva02_tiny_patch14_224 efficientformer_l1 fastvit_t8 focalnet_tiny_srf gcvit_xxtiny hiera_tiny_224 tiny_vit_5m_224 nextvit_small
# differs[xcit_nano_12_p16_224]: PyTorch's gradient of a batch norm is wrong there (docs/coming-from-pytorch.md)
# differs[efficientformer_l1]: PyTorch's gradient of a batch norm is wrong there (docs/coming-from-pytorch.md)

import sys

import timm
import torch
from shown import show

name = sys.argv[1]
torch.manual_seed(0)
model = timm.create_model(name, pretrained=False, num_classes=10)
show("parameters", sum(p.numel() for p in model.parameters()))
x = torch.randn(1, *model.default_cfg["input_size"])
model.eval()
out = model(x)
show("logits", out)
out.square().sum().backward()
grads = [p.grad.norm() for p in model.parameters() if p.grad is not None]
show("gradients", torch.stack(grads))
model.reset_classifier(3)
with torch.no_grad():
    show("features", model.forward_features(x))
