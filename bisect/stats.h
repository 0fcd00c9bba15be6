#ifndef BISECT_STATS_H
#define BISECT_STATS_H

/*
 * The few statistics that verdicts and reports need. Pure functions; samples are finite numbers in
 * any order and are not changed. Sums are kept in long double, so squares of huge values do not
 * overflow.
 */

#include <stddef.h>

/* All of these need n >= 1. */
double stats_median(const double *x, size_t n);
double stats_mean(const double *x, size_t n);
double stats_min(const double *x, size_t n);
double stats_max(const double *x, size_t n);

/* Of the population that the samples come from (n - 1); 0 for one sample. */
double stats_sd(const double *x, size_t n);

/* Welch's comparison of two means with unequal variances. */
struct stats_welch {
	double difference; /* mean of b - mean of a */
	double t;	   /* in its standard errors; infinite when those are 0 */
	double df;	   /* Welch and Satterthwaite's degrees of freedom; 0 = cannot be told */
	double low, high;  /* two-sided confidence interval of the difference */
	double p_less;	   /* one-sided p values: chance of a difference so small, ... */
	double p_greater;  /* ... or so great, if the means were equal */
};

/*
 * With fewer than two samples on a side there is no variance: df = 0, the interval is infinite and
 * both p are 1. Constant samples have an interval of no width and p of 0, or 1 when they are equal.
 * Source: B. L. Welch, Biometrika 34 (1947).
 */
void stats_welch(const double *a, size_t na, const double *b, size_t nb, double confidence,
	struct stats_welch *ret);

#endif
