<?php
/**
 * Defines a class, calls its methods and forgets all of it at the end of each request: what comes next lies where it lay.
 *
 * Generation N is four methods, ph_a_N to ph_d_N. Each is called by the one before alone, and ph_a_N by one of eight of
 * PHP's own functions alone, the one of N modulo 8. So any other pair of caller and callee is a wrong name.
 *
 * php -S HOST:PORT forever.php, then GET /?number=N; or php forever.php SECONDS N
 */
$number = (int) ($_GET['number'] ?? $argv[2]);
// Some live long enough to be asked for, most are gone by then.
$end = microtime(true) + (float) ($argv[1] ?? ($number % 32 == 0 ? 0.8 : 0.005));
$n = sprintf('%08d', $number);
$source = <<<PHP
class Made
{
    public static function ph_a_$n(\$x) { return self::ph_b_$n(1) + 1; }
    public static function ph_b_$n(\$x) { return self::ph_c_$n(\$x + 2) + 1; }
    public static function ph_c_$n(\$x) { return self::ph_d_$n(\$x + 3) + 1; }
    public static function ph_d_$n(\$x) { for (\$i = 0; \$i < 1000; \$i++) { \$x = (\$x * 31 + \$i) & 0xFFFFFF; } return \$x; }
}
PHP;
eval($source);
$made = "Made::ph_a_$n";
while (microtime(true) < $end) {
    $one = [1];
    $two = [1, 2];
    switch ($number % 8) {
        case 0: array_map($made, $one); break;
        case 1: array_filter($one, $made); break;
        case 2: array_walk($one, $made); break;
        case 3: usort($two, $made); break;
        case 4: uasort($two, $made); break;
        case 5: array_reduce($one, $made); break;
        case 6: preg_replace_callback('/a/', $made, 'a'); break;
        case 7: array_udiff($one, $one, $made); break;
    }
}
echo "done\n";
