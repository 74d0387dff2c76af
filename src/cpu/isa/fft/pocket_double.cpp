// Transforms of float64 by pocketfft (pocket.inc).
#define RL_REAL double
#include "cpu/isa/fft/pocket.inc"
