package shop;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The Java service that {@code cargo xtask demo} profiles: an index of offers that grows, and searches in it over HTTP.
 * In: a seed of offers as the only argument. Out: its port, as the first line. It runs until its standard input ends.
 */
public final class SearchService {
    private static final int SEARCHERS = 2;
    private static final int FIRST_OFFERS = 20_000;

    private SearchService() {}

    public static void main(String[] arguments) throws IOException {
        Offers offers = new Offers(arguments.length > 0 ? Long.parseLong(arguments[0]) : 1);
        Catalogue catalogue = new Catalogue();
        for (int i = 0; i < FIRST_OFFERS; i++) {
            catalogue.add(offers.next());
        }
        catalogue.refresh();
        startImport(catalogue, offers);

        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 16);
        server.createContext("/search", new SearchHandler(catalogue));
        server.setExecutor(named("search"));
        server.start();
        System.out.println(server.getAddress().getPort());
        while (System.in.read() >= 0) {
            // Whoever started this program closes the pipe, or ends.
        }
        System.exit(0);
    }

    private static ExecutorService named(String name) {
        AtomicInteger count = new AtomicInteger();
        return Executors.newFixedThreadPool(SEARCHERS, work -> new Thread(work, name + "-" + count.incrementAndGet()));
    }

    private static void startImport(Catalogue catalogue, Offers offers) {
        Thread thread = new Thread(new Import(catalogue, offers), "import");
        thread.setDaemon(true);
        thread.start();
    }
}
