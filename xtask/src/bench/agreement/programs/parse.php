<?php
// PHP-Parser reads its own sources, resolves their names and writes them anew, again and again, for bench agreement;
// Excimer watches the seconds after the warm-up.
//
// php parse.php WARM_UP_S SECONDS OUT INTERVAL_US FOLDER

[, $warmUp, $seconds, $out, $interval, $folder] = $argv;
spl_autoload_register(function (string $class) use ($folder): void {
    $file = "$folder/" . strtr($class, '\\', '/') . '.php';
    if (is_file($file)) {
        require $file;
    }
});

function sources(string $folder): array
{
    $sources = [];
    foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator($folder)) as $file) {
        if ($file->getExtension() === 'php') {
            $sources[$file->getPathname()] = file_get_contents($file->getPathname());
        }
    }
    ksort($sources);
    return $sources;
}

function translate(PhpParser\Parser $parser, string $code): string
{
    $tree = $parser->parse($code);
    $traverser = new PhpParser\NodeTraverser();
    $traverser->addVisitor(new PhpParser\NodeVisitor\NameResolver());
    return (new PhpParser\PrettyPrinter\Standard())->prettyPrintFile($traverser->traverse($tree));
}

function work(array $sources, float $seconds): void
{
    $parser = (new PhpParser\ParserFactory())->create(PhpParser\ParserFactory::PREFER_PHP7);
    $end = microtime(true) + $seconds;
    while (microtime(true) < $end) {
        foreach ($sources as $code) {
            translate($parser, $code);
        }
    }
}

$sources = sources($folder);
work($sources, $warmUp);
$profiler = new ExcimerProfiler();
$profiler->setEventType(EXCIMER_CPU);
$profiler->setPeriod($interval / 1e6);
$profiler->setMaxDepth(0);
$profiler->start();
fwrite(STDOUT, "begun\n");
work($sources, $seconds);
$profiler->stop();
fwrite(STDOUT, "ended\n");
file_put_contents($out, $profiler->getLog()->formatCollapsed());
// What was sampled last has its names as long as the process lives.
stream_get_contents(STDIN);
