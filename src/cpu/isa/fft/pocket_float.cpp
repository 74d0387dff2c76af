// Fourier transforms of lines of any length, in float (fft/pocket.h).
#define RL_REAL float
#include "cpu/isa/fft/pocket.inc"
