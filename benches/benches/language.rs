//! Benchmarks of the compiler and the interpreter.

use criterion::{Criterion, criterion_group, criterion_main};
use ptc_benches::{PIPELINE, compiled, planned, run};
use std::hint::black_box;

fn compiling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    group.bench_function("1 + 2", |bencher| bencher.iter(|| black_box(compiled("(+ 1 2)"))));
    group.bench_function("pipeline of 25 lines", |bencher| bencher.iter(|| black_box(compiled(PIPELINE))));
    group.bench_function("pipeline of 25 lines, and its data flows", |bencher| {
        bencher.iter(|| black_box(planned(PIPELINE)))
    });
    group.finish();
}

fn running(criterion: &mut Criterion) {
    let programs = [
        ("fib 20", "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 20)"),
        ("loop 100k", "(loop [i 0 acc 0] (if (< i 100000) (recur (inc i) (+ acc i)) acc))"),
        ("reduce with a closure 10k", "(let [k 3] (reduce (fn [a x] (+ a (* k x))) 0 (range 10000)))"),
        ("map and filter 10k", "(count (filter even? (map inc (range 10000))))"),
        (
            "keyword access 10k",
            "(let [m {:a 1 :b 2 :c 3 :d 4}] (loop [i 0 s 0] (if (< i 10000) (recur (inc i) (+ s (:c m))) s)))",
        ),
        ("string building 1k", "(count (reduce (fn [s i] (str s i \",\")) \"\" (range 1000)))"),
        ("conj and assoc 10k", "(count (reduce (fn [m i] (assoc m i [i])) {} (range 10000)))"),
        ("pipeline of 25 lines", PIPELINE),
    ];
    let mut group = criterion.benchmark_group("run");
    for (name, source) in programs {
        let program = compiled(source);
        group.bench_function(name, |bencher| bencher.iter(|| run(&program)));
    }
    group.finish();
}

criterion_group!(language, compiling, running);
criterion_main!(language);
