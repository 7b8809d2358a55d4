import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Date;
import java.util.Properties;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobExecutionContext;
import org.quartz.JobExecutionException;
import org.quartz.SimpleScheduleBuilder;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;
import org.quartz.utils.DBConnectionManager;

/** One node of a Quartz cluster. `POST /jobs` schedules a job; each firing writes a row into the table `done`. */
public class Scheduler {
    static final int FIRINGS = Integer.parseInt(System.getenv().getOrDefault("FIRINGS", "3")), EVERY_S = 2;

    public static class Work implements Job {
        public void execute(JobExecutionContext context) throws JobExecutionException {
            String insert = "insert into done (name, due, node) values (?, ?, ?)";
            try (Connection connection = DBConnectionManager.getInstance().getConnection("db");
                 var statement = connection.prepareStatement(insert)) {
                connection.setAutoCommit(true);
                statement.setString(1, context.getTrigger().getKey().getName());
                statement.setLong(2, context.getScheduledFireTime().getTime());
                statement.setString(3, context.getScheduler().getSchedulerInstanceId());
                statement.executeUpdate();
            } catch (Exception error) {
                throw new JobExecutionException(error);
            }
        }
    }

    /** The tables of Quartz, as its jar has them, unless another node has made them. */
    static void makeTables() throws Exception {
        try (Connection connection = DBConnectionManager.getInstance().getConnection("db");
             var statement = connection.createStatement();
             var file = Job.class.getResourceAsStream("/org/quartz/impl/jdbcjobstore/tables_postgres.sql")) {
            connection.setAutoCommit(true);
            var found = statement.executeQuery("select to_regclass('qrtz_locks') is null");
            found.next();
            if (found.getBoolean(1)) statement.execute(new String(file.readAllBytes(), StandardCharsets.UTF_8));
        } catch (SQLException error) {
            throw new IllegalStateException(error);
        }
    }

    static void answer(HttpExchange exchange, int status) throws java.io.IOException {
        exchange.sendResponseHeaders(status, -1);
        exchange.close();
    }

    public static void main(String[] words) throws Exception {
        Properties properties = new Properties();
        properties.load(Scheduler.class.getResourceAsStream("/cluster.properties"));
        properties.setProperty("org.quartz.scheduler.instanceId", "node-" + words[1]);
        properties.setProperty("org.quartz.jobStore.acquireTriggersWithinLock", System.getenv().getOrDefault("WITHIN_LOCK", "false"));
        properties.setProperty("org.quartz.dataSource.db.URL", "jdbc:postgresql://" + System.getenv("DATABASE") + "/app");
        org.quartz.Scheduler scheduler = new StdSchedulerFactory(properties).getScheduler();
        makeTables();
        scheduler.addJob(JobBuilder.newJob(Work.class).withIdentity("work").storeDurably().build(), true);
        scheduler.start();

        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 0);
        server.createContext("/health", exchange -> answer(exchange, 200));
        server.createContext("/jobs", exchange -> {
            var trigger = TriggerBuilder.newTrigger()
                    .forJob("work")
                    .withIdentity(exchange.getRequestURI().getQuery() + "-" + System.currentTimeMillis())
                    .startAt(new Date())
                    .withSchedule(SimpleScheduleBuilder.repeatSecondlyForTotalCount(FIRINGS, EVERY_S))
                    .build();
            try {
                scheduler.scheduleJob(trigger);
                answer(exchange, 201);
            } catch (org.quartz.SchedulerException error) {
                answer(exchange, 500);
            }
        });
        server.start();
    }
}
