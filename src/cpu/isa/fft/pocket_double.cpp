// Fourier transforms of lines of any length, in double (fft/pocket.h).
#define RL_REAL double
#include "cpu/isa/fft/pocket.inc"
