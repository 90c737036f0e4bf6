//! The row groups of a view.

use crate::column::bounds::{Bounds, Statistics};
use crate::store::format::read::groups::{ReadError, RowGroupTask, of_file, of_group};
use crate::store::table::schema::Table;
use crate::store::view::snapshot::Snapshot;

impl Snapshot {
    /// The units of `samples`, or of one of its roll-ups, that `may` accepts, by what is known of their columns;
    /// damaged files are left out.
    pub(crate) async fn units(
        &self,
        table: Table,
        may: impl Fn(Statistics<'_>) -> bool,
    ) -> Result<Vec<RowGroupTask>, ReadError> {
        let mut units = Vec::new();
        let files = self.files(table).iter();
        let files = files
            .filter(|file| may(&|column| of_file(table, file, column)))
            .cloned();
        for file in self.intact(table, files.collect()).await {
            let footer = self.footers.get(&self.reader, table, &file).await?;
            for (group, rows) in footer.row_groups().iter().enumerate() {
                if may(&|column| of_group(table, &file, rows, column)) {
                    let (file, footer) = (file.clone(), footer.clone());
                    units.push(RowGroupTask::File {
                        table,
                        file,
                        footer,
                        group,
                    });
                }
            }
        }
        for rows in self.pending(table) {
            let hour = rows.partition();
            let is_hour = |column: &str| column == table.partition_column();
            let known =
                |column: &str| is_hour(column).then(|| hour.clone().map(|hour| Bounds::Texts(hour.clone(), hour)))?;
            if may(&known) {
                units.push(RowGroupTask::Pending(rows.clone()));
            }
        }
        Ok(units)
    }
}
