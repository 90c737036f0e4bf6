//! The row groups of a view.

use crate::column::bounds::{Bounds, Statistics};
use crate::store::format::read::groups::{ReadError, RowGroupTask, of_file, of_group, read_error};
use crate::store::table::data_file::DataFile;
use crate::store::table::file_list::of_partition;
use crate::store::table::schema::Table;
use crate::store::view::snapshot::Snapshot;
use std::sync::Arc;

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

    /// These row groups of a file that another server named: one of this view, or one that it does not have yet, or no
    /// more.
    ///
    /// # Errors
    /// The file is not what it is told to be, is corrupt, or cannot be read.
    pub(crate) async fn units_of(
        &self,
        table: Table,
        told: DataFile,
        groups: &[usize],
    ) -> Result<Vec<RowGroupTask>, ReadError> {
        let mut known = of_partition(self.files(table), &told.partition).iter();
        let known = known.find(|file| file.path == told.path).cloned();
        let file = known.unwrap_or_else(|| Arc::new(told));
        let failed = read_error(table, &file);
        if self.intact(table, vec![file.clone()]).await.is_empty() {
            return Err(failed("it is corrupt".to_owned()));
        }
        let footer = self.footers.get(&self.reader, table, &file).await?;
        if let Some(group) = groups.iter().find(|group| **group >= footer.num_row_groups()) {
            return Err(failed(format!("it has no row group {group}")));
        }
        let unit = |group: &usize| RowGroupTask::File {
            table,
            file: file.clone(),
            footer: footer.clone(),
            group: *group,
        };
        Ok(groups.iter().map(unit).collect())
    }
}
