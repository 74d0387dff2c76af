"""Denoising networks, autoencoders, schedulers, a pipeline made by hand."""
# packages: diffusers
# cases: unet conditional vae transformer schedulers pipeline

import sys
import tempfile

import diffusers as D
import torch
from shown import show, train

torch.manual_seed(0)
case = sys.argv[1]
unet = dict(sample_size=16, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8)
if case == "unet":
    model = D.UNet2DModel(
        in_channels=3,
        out_channels=3,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        **unet,
    )
    schedule, x = D.DDPMScheduler(50), torch.randn(2, 3, 16, 16)
    noise, t = torch.randn_like(x), torch.randint(50, (2,))
    train(model, lambda: (model(schedule.add_noise(x, noise, t), t).sample - noise).square().mean())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = D.UNet2DModel.from_pretrained(folder)
    show("same", torch.allclose(again(x, 3).sample, model(x, 3).sample, atol=1e-5))
elif case == "conditional":
    model = D.UNet2DConditionModel(
        in_channels=4,
        out_channels=4,
        cross_attention_dim=16,
        attention_head_dim=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        **unet,
    )
    x, c = torch.randn(1, 4, 16, 16), torch.randn(1, 5, 16)
    train(model, lambda: model(x, 7, encoder_hidden_states=c).sample.square().mean())
elif case == "vae":
    model = D.AutoencoderKL(
        block_out_channels=(16, 32),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=8,
        latent_channels=4,
    )
    x = torch.randn(1, 3, 32, 32)
    show("latent", model.encode(x).latent_dist.mode())
    train(model, lambda: (model(x).sample - x).square().mean())
    model.enable_tiling(), model.enable_slicing()
    show("decoded", model.decode(torch.randn(2, 4, 16, 16)).sample)
elif case == "transformer":
    model = D.DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=8,
        norm_num_groups=4,
    )
    x = torch.randn(1, 4, 8, 8)
    train(
        model,
        lambda: model(x, torch.tensor([3]), class_labels=torch.tensor([5])).sample.square().mean(),
    )
elif case == "schedulers":
    for make in (
        D.DDIMScheduler,
        D.DDPMScheduler,
        D.PNDMScheduler,
        D.EulerDiscreteScheduler,
        D.EulerAncestralDiscreteScheduler,
        D.LMSDiscreteScheduler,
        D.HeunDiscreteScheduler,
        D.DPMSolverMultistepScheduler,
        D.UniPCMultistepScheduler,
        D.KDPM2DiscreteScheduler,
        D.FlowMatchEulerDiscreteScheduler,
        D.LCMScheduler,
    ):
        schedule = make()
        schedule.set_timesteps(5)
        x = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        g = torch.Generator().manual_seed(1)
        for t in schedule.timesteps:
            options = {"generator": g} if "generator" in schedule.step.__code__.co_varnames else {}
            x = schedule.step(0.1 * x, t, x, **options).prev_sample
        show(make.__name__, x)
else:
    model = D.UNet2DModel(
        in_channels=3,
        out_channels=3,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        **unet,
    )
    pipe = D.DDPMPipeline(model, D.DDIMScheduler())
    pipe.set_progress_bar_config(disable=True)
    images = pipe(
        batch_size=1,
        num_inference_steps=3,
        generator=torch.Generator().manual_seed(0),
        output_type="np",
    ).images
    show("images", torch.from_numpy(images))
    with tempfile.TemporaryDirectory() as folder:
        pipe.save_pretrained(folder)
        print(type(D.DDPMPipeline.from_pretrained(folder)).__name__)
