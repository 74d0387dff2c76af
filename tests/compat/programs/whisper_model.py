"""Speech recognition with random weights."""
# packages: whisper

import torch
import whisper
from shown import show
from whisper.model import ModelDimensions, Whisper

torch.manual_seed(0)
model = Whisper(ModelDimensions(80, 1500, 32, 2, 1, 51865, 64, 32, 2, 1)).eval()
torch.nn.init.normal_(model.decoder.positional_embedding)  # it is made of memory as it is
audio = torch.sin(torch.arange(16000 * 2) / 20.0)
mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(audio))
show("mel", mel)
with torch.no_grad():
    show("features", model.encoder(mel[None]))
    show("logits", model(mel[None], torch.tensor([[50258, 50259]])))
    options = whisper.DecodingOptions(
        language="en", without_timestamps=True, fp16=False, sample_len=5
    )
    print("tokens", len(whisper.decode(model, mel, options).tokens))
    show("language", model.detect_language(mel)[0])
