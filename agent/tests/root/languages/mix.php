<?php
/**
 * A known mix: of all units of work seven in ten are done at the end of the chain a1, a2, ... a12, three in ten at the
 * end of b1, b2, ... b12. Time ends it, and never divides it.
 *
 * php mix.php SECONDS MODE
 */
namespace Mix;

const TURNS = 2000;

function a1($x) { return a2($x + 1) + 1; }
function a2($x) { return a3($x + 2) + 1; }
function a3($x) { return a4($x + 3) + 1; }
function a4($x) { return a5($x + 4) + 1; }
function a5($x) { return a6($x + 5) + 1; }
function a6($x) { return a7($x + 6) + 1; }
function a7($x) { return a8($x + 7) + 1; }
function a8($x) { return a9($x + 8) + 1; }
function a9($x) { return a10($x + 9) + 1; }
function a10($x) { return a11($x + 10) + 1; }
function a11($x) { return a12($x + 11) + 1; }
function a12($x) { for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; } return $x; }
function b1($x) { return b2($x + 1) + 1; }
function b2($x) { return b3($x + 2) + 1; }
function b3($x) { return b4($x + 3) + 1; }
function b4($x) { return b5($x + 4) + 1; }
function b5($x) { return b6($x + 5) + 1; }
function b6($x) { return b7($x + 6) + 1; }
function b7($x) { return b8($x + 7) + 1; }
function b8($x) { return b9($x + 8) + 1; }
function b9($x) { return b10($x + 9) + 1; }
function b10($x) { return b11($x + 10) + 1; }
function b11($x) { return b12($x + 11) + 1; }
function b12($x) { for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; } return $x; }

function a_deep($levels, $x) { return $levels > 1 ? a_deep($levels - 1, $x + 1) : a12($x); }
function b_deep($levels, $x) { return $levels > 1 ? b_deep($levels - 1, $x + 1) : b12($x); }

class A
{
    public function m1($x) { return self::m2($x + 1) + 1; }
    public static function m2($x) { return (new self)->m3($x + 2) + 1; }
    public function m3($x) { return self::m4($x + 3) + 1; }
    public static function m4($x) { return (new self)->m5($x + 4) + 1; }
    public function m5($x) { return self::m6($x + 5) + 1; }
    public static function m6($x) { return (new self)->m7($x + 6) + 1; }
    public function m7($x) { return self::m8($x + 7) + 1; }
    public static function m8($x) { return (new self)->m9($x + 8) + 1; }
    public function m9($x) { return self::m10($x + 9) + 1; }
    public static function m10($x) { return (new self)->m11($x + 10) + 1; }
    public function m11($x) { return self::m12($x + 11) + 1; }
    public static function m12($x) { for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; } return $x; }
}

class B
{
    public function m1($x) { return self::m2($x + 1) + 1; }
    public static function m2($x) { return (new self)->m3($x + 2) + 1; }
    public function m3($x) { return self::m4($x + 3) + 1; }
    public static function m4($x) { return (new self)->m5($x + 4) + 1; }
    public function m5($x) { return self::m6($x + 5) + 1; }
    public static function m6($x) { return (new self)->m7($x + 6) + 1; }
    public function m7($x) { return self::m8($x + 7) + 1; }
    public static function m8($x) { return (new self)->m9($x + 8) + 1; }
    public function m9($x) { return self::m10($x + 9) + 1; }
    public static function m10($x) { return (new self)->m11($x + 10) + 1; }
    public function m11($x) { return self::m12($x + 11) + 1; }
    public static function m12($x) { for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; } return $x; }
}

function a1_made($x) { foreach (a2_made($x + 1) as $y) { yield $y + 1; } }
function a2_made($x) { foreach (a3_made($x + 2) as $y) { yield $y + 1; } }
function a3_made($x) { foreach (a4_made($x + 3) as $y) { yield $y + 1; } }
function a4_made($x) { foreach (a5_made($x + 4) as $y) { yield $y + 1; } }
function a5_made($x) { foreach (a6_made($x + 5) as $y) { yield $y + 1; } }
function a6_made($x) { foreach (a7_made($x + 6) as $y) { yield $y + 1; } }
function a7_made($x) { foreach (a8_made($x + 7) as $y) { yield $y + 1; } }
function a8_made($x) { foreach (a9_made($x + 8) as $y) { yield $y + 1; } }
function a9_made($x) { foreach (a10_made($x + 9) as $y) { yield $y + 1; } }
function a10_made($x) { foreach (a11_made($x + 10) as $y) { yield $y + 1; } }
function a11_made($x) { foreach (a12_made($x + 11) as $y) { yield $y + 1; } }
function a12_made($x)
{
    for ($n = 0; $n < 4; $n++) {
        for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; }
        yield $x;
    }
}
function b1_made($x) { foreach (b2_made($x + 1) as $y) { yield $y + 1; } }
function b2_made($x) { foreach (b3_made($x + 2) as $y) { yield $y + 1; } }
function b3_made($x) { foreach (b4_made($x + 3) as $y) { yield $y + 1; } }
function b4_made($x) { foreach (b5_made($x + 4) as $y) { yield $y + 1; } }
function b5_made($x) { foreach (b6_made($x + 5) as $y) { yield $y + 1; } }
function b6_made($x) { foreach (b7_made($x + 6) as $y) { yield $y + 1; } }
function b7_made($x) { foreach (b8_made($x + 7) as $y) { yield $y + 1; } }
function b8_made($x) { foreach (b9_made($x + 8) as $y) { yield $y + 1; } }
function b9_made($x) { foreach (b10_made($x + 9) as $y) { yield $y + 1; } }
function b10_made($x) { foreach (b11_made($x + 10) as $y) { yield $y + 1; } }
function b11_made($x) { foreach (b12_made($x + 11) as $y) { yield $y + 1; } }
function b12_made($x)
{
    for ($n = 0; $n < 4; $n++) {
        for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; }
        yield $x;
    }
}

function a1_called($x) { return (int) first([$x, $x + 1], 'Mix\\a2_called'); }
function a2_called($x) { return (int) array_reduce([$x], 'Mix\\a3_called', 0); }
function a3_called($x) { return (int) call_user_func('Mix\\a4_called', $x); }
function a4_called($x) { return (int) \preg_replace_callback('/^./', 'Mix\\a5_called', "1$x"); }
function a5_called($x) { $x = (int) $x[0]; return (int) array_sum(array_map('Mix\\a6_called', [$x])); }
function a6_called($x) { return (int) first([$x, $x + 1], 'Mix\\a7_called'); }
function a7_called($x) { return (int) array_reduce([$x], 'Mix\\a8_called', 0); }
function a8_called($x) { return (int) call_user_func('Mix\\a9_called', $x); }
function a9_called($x) { return (int) \preg_replace_callback('/^./', 'Mix\\a10_called', "1$x"); }
function a10_called($x) { $x = (int) $x[0]; return (int) array_sum(array_map('Mix\\a11_called', [$x])); }
function a11_called($x) { return (int) first([$x, $x + 1], 'Mix\\a12_called'); }
function a12_called($x) { $x = 7; for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; } return $x; }
function b1_called($x) { return (int) first([$x, $x + 1], 'Mix\\b2_called'); }
function b2_called($x) { return (int) array_reduce([$x], 'Mix\\b3_called', 0); }
function b3_called($x) { return (int) call_user_func('Mix\\b4_called', $x); }
function b4_called($x) { return (int) \preg_replace_callback('/^./', 'Mix\\b5_called', "1$x"); }
function b5_called($x) { $x = (int) $x[0]; return (int) array_sum(array_map('Mix\\b6_called', [$x])); }
function b6_called($x) { return (int) first([$x, $x + 1], 'Mix\\b7_called'); }
function b7_called($x) { return (int) array_reduce([$x], 'Mix\\b8_called', 0); }
function b8_called($x) { return (int) call_user_func('Mix\\b9_called', $x); }
function b9_called($x) { return (int) \preg_replace_callback('/^./', 'Mix\\b10_called', "1$x"); }
function b10_called($x) { $x = (int) $x[0]; return (int) array_sum(array_map('Mix\\b11_called', [$x])); }
function b11_called($x) { return (int) first([$x, $x + 1], 'Mix\\b12_called'); }
function b12_called($x) { $x = 7; for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; } return $x; }

/** Of two values the one that sorts first. */
function first($values, $function)
{
    usort($values, $function);
    return $values[0];
}

function a1_thrown($x) { return a2_thrown($x + 1) + 1; }
function a2_thrown($x) { return a3_thrown($x + 2) + 1; }
function a3_thrown($x) { return a4_thrown($x + 3) + 1; }
function a4_thrown($x) { return a5_thrown($x + 4) + 1; }
function a5_thrown($x) { return a6_thrown($x + 5) + 1; }
function a6_thrown($x) { try { return a7_thrown($x + 6) + 1; } finally { $x++; } }
function a7_thrown($x) { return a8_thrown($x + 7) + 1; }
function a8_thrown($x) { return a9_thrown($x + 8) + 1; }
function a9_thrown($x) { return a10_thrown($x + 9) + 1; }
function a10_thrown($x) { return a11_thrown($x + 10) + 1; }
function a11_thrown($x) { return a12_thrown($x + 11) + 1; }
function a12_thrown($x)
{
    for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; }
    throw new \Exception("$x");
}
function b1_thrown($x) { return b2_thrown($x + 1) + 1; }
function b2_thrown($x) { return b3_thrown($x + 2) + 1; }
function b3_thrown($x) { return b4_thrown($x + 3) + 1; }
function b4_thrown($x) { return b5_thrown($x + 4) + 1; }
function b5_thrown($x) { return b6_thrown($x + 5) + 1; }
function b6_thrown($x) { try { return b7_thrown($x + 6) + 1; } finally { $x++; } }
function b7_thrown($x) { return b8_thrown($x + 7) + 1; }
function b8_thrown($x) { return b9_thrown($x + 8) + 1; }
function b9_thrown($x) { return b10_thrown($x + 9) + 1; }
function b10_thrown($x) { return b11_thrown($x + 10) + 1; }
function b11_thrown($x) { return b12_thrown($x + 11) + 1; }
function b12_thrown($x)
{
    for ($i = 0; $i < TURNS; $i++) { $x = ($x * 31 + $i) & 0xFFFFFF; }
    throw new \Exception("$x");
}

function caught($function, $x)
{
    try {
        return $function($x);
    } catch (\Exception $error) {
        return strlen($error->getMessage());
    }
}

function drained($values)
{
    foreach ($values as $value) {
    }
    return $value;
}

/** In a fiber each, of which one waits while the other works. */
function fibers($times, $first, $second)
{
    $run = function ($function) {
        $x = 1;
        while (true) {
            $x = $function($x);
            \Fiber::suspend($x);
        }
    };
    $both = [[new \Fiber($run), $first, 7], [new \Fiber($run), $second, 3]];
    for ($n = 0; $n < $times; $n++) {
        foreach ($both as [$fiber, $function, $units]) {
            for ($i = 0; $i < $units; $i++) {
                $fiber->isStarted() ? $fiber->resume() : $fiber->start($function);
            }
        }
    }
}

function mix($a, $b)
{
    $x = 1;
    for ($i = 0; $i < 7; $i++) {
        $x = $a($x);
    }
    for ($i = 0; $i < 3; $i++) {
        $x = $b($x);
    }
    return $x;
}

$modes = [
    'plain' => function () { mix('Mix\a1', 'Mix\b1'); },
    'recursion' => function () {
        mix(function ($x) { return a_deep(200, $x); }, function ($x) { return b_deep(200, $x); });
    },
    'methods' => function () {
        mix(function ($x) { return (new A)->m1($x); }, function ($x) { return (new B)->m1($x); });
    },
    'generator' => function () {
        mix(function ($x) { return drained(a1_made($x)); }, function ($x) { return drained(b1_made($x)); });
    },
    'callback' => function () { mix('Mix\a1_called', 'Mix\b1_called'); },
    'exception' => function () {
        mix(
            function ($x) { return caught('Mix\a1_thrown', $x); },
            function ($x) { return caught('Mix\b1_thrown', $x); }
        );
    },
    'fibers' => function () { fibers(4, 'Mix\a1', 'Mix\b1'); },
];

$end = microtime(true) + (float) $argv[1];
while (microtime(true) < $end) {
    $modes[$argv[2]]();
}
