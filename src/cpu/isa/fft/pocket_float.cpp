// Transforms of float32 by pocketfft (pocket.inc).
#define RL_REAL float
#include "cpu/isa/fft/pocket.inc"
