import com.google.gson.JsonObject;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;

/** ShedLock in a table of PostgreSQL, by its JdbcTemplate provider. */
final class TableStore implements Store {
    private static final String TABLE = "CREATE TABLE IF NOT EXISTS shedlock(name VARCHAR(64) NOT NULL, "
        + "lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL, "
        + "PRIMARY KEY (name))";
    private static final String MADE_MEANWHILE = "23505";
    private final boolean serverTime;
    private HikariDataSource links;

    /** `serverTime`: by the clock of the database, as ShedLock recommends it, instead of that of the client. */
    TableStore(boolean serverTime) {
        this.serverTime = serverTime;
    }

    /** A connection for each thread; timeouts short enough to notice a silent server. */
    @Override
    public void open(JsonObject node) throws SQLException {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://" + node.get("host").getAsString() + ":" + node.get("port").getAsInt()
            + "/postgres?sslmode=disable&gssEncMode=disable&connectTimeout=10&socketTimeout=1");
        config.setUsername("lockstorm");
        config.setMaximumPoolSize(Threads.MOST);
        config.setMinimumIdle(1);
        config.setConnectionTimeout(1000);
        links = new HikariDataSource(config);
        try (Connection link = links.getConnection()) {
            link.createStatement().execute(TABLE);
        } catch (SQLException error) { // of two that make it at once, one is refused
            if (!MADE_MEANWHILE.equals(error.getSQLState())) throw error;
        }
    }

    @Override
    public LockProvider provider() {
        JdbcTemplateLockProvider.Configuration.Builder settings =
            JdbcTemplateLockProvider.Configuration.builder().withJdbcTemplate(new JdbcTemplate(links));
        if (serverTime) settings.usingDbTime();
        return new JdbcTemplateLockProvider(settings.build());
    }

    @Override
    public void describe(JsonObject hello, boolean hosts) {
        hello.addProperty("name", serverTime ? "ShedLock on PostgreSQL with usingDbTime" : "ShedLock on PostgreSQL");
        hello.addProperty("source", "ShedLock, SqlStatementsSource.java");
        hello.addProperty("service", "postgres");
        if (hosts) hello.add("keeps", Lines.words(List.of("public.shedlock"))); // a row for each name, for good
    }
}
